/**
 * How a command reaches the server that has the embedded database: a socket in the data folder, which only its owner may open. One line of JSON asks,
 * one answers.
 */
import { chmod, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';

export interface CommandCall {
  readonly argv: readonly string[];
  readonly stdin: string;
}
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const MAX_CALL = 1 << 20;

/** The kernel takes about 100 bytes for the name of a socket; from the working folder it may be shorter. */
function socketOf(folder: string): string {
  const path = join(folder, 'admin.sock');
  const near = relative(process.cwd(), path);
  return near.length < path.length ? near : path;
}

export async function listenForCommands(
  folder: string,
  run: (call: CommandCall) => Promise<CommandResult>,
): Promise<() => Promise<void>> {
  const path = socketOf(folder);
  // Whoever holds the folder's lock is alone: what lies there is of a server that was killed.
  await rm(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    answer(socket, run).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve());
  });
  await chmod(path, 0o600);
  server.unref();
  return () => close(server, path);
}

async function answer(socket: Socket, run: (call: CommandCall) => Promise<CommandResult>): Promise<void> {
  let said = '';
  for await (const chunk of socket.setEncoding('utf8')) {
    said += chunk as string;
    if (said.length > MAX_CALL) throw new Error('a call is too long');
  }
  socket.end(`${JSON.stringify(await run(JSON.parse(said) as CommandCall))}\n`);
}

async function close(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await rm(path, { force: true });
}

/** Throws where no server listens. */
export async function callServer(folder: string, call: CommandCall): Promise<CommandResult> {
  const socket = connect(socketOf(folder));
  const answered = text(socket);
  socket.end(JSON.stringify(call));
  return JSON.parse(await answered) as CommandResult;
}
