/**
 * How a command reaches the server that has the embedded database open: a socket in the data folder, which only its owner may open. The call is one line
 * of JSON, and so is the result.
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

/** The kernel limits the path of a socket to about 100 bytes; relative to the working folder it may be shorter. */
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
  // The folder's lock is ours, so a socket that is there was left by a server that was killed.
  await rm(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    serveCall(socket, run).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve());
  });
  await chmod(path, 0o600);
  server.unref();
  return () => close(server, path);
}

async function serveCall(socket: Socket, run: (call: CommandCall) => Promise<CommandResult>): Promise<void> {
  let call = '';
  for await (const chunk of socket.setEncoding('utf8')) {
    call += chunk as string;
    if (call.length > MAX_CALL) throw new Error('the call is too long');
  }
  socket.end(`${JSON.stringify(await run(JSON.parse(call) as CommandCall))}\n`);
}

async function close(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await rm(path, { force: true });
}

/** Throws if no server listens. */
export async function callServer(folder: string, call: CommandCall): Promise<CommandResult> {
  const socket = connect(socketOf(folder));
  const result = text(socket);
  socket.end(JSON.stringify(call));
  return JSON.parse(await result) as CommandResult;
}
