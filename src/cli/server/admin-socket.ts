/**
 * The connection of a command to the server that has the embedded database open: a socket in the data
 * folder, which only its owner may open. The call is a line of JSON; the server returns the output of
 * the command in lines of JSON, and last the exit code.
 */
import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';

export interface SentCommand {
  readonly argv: readonly string[];
  readonly stdin: string;
  /** The folder of the caller, to which paths are relative. */
  readonly cwd: string;
  /** The schema file of the caller; the caller's environment may name it. */
  readonly schema: string;
}
/** A stream for the output of a command. `write` returns false if the reader is slow; then `drain` follows. */
interface Output {
  write(text: string): unknown;
}
export interface Outputs {
  readonly stdout: Output;
  readonly stderr: Output;
}
/** → the exit code. */
export type RunCall = (call: SentCommand, outputs: Outputs) => Promise<number>;
type Message = { readonly stdout: string } | { readonly stderr: string } | { readonly code: number };

const MAX_CALL = 1 << 20;

/**
 * The kernel limits the path of a socket to about 100 bytes; relative to the working folder it may
 * be shorter.
 */
function socketOf(folder: string): string {
  const path = join(folder, 'admin.sock');
  const near = relative(process.cwd(), path);
  return near.length < path.length ? near : path;
}

export async function listenForCommands(folder: string, run: RunCall): Promise<() => Promise<void>> {
  const path = socketOf(folder);
  // The folder's lock is ours, so an existing socket belongs to a server that was killed.
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

async function serveCall(socket: Socket, run: RunCall): Promise<void> {
  let call = '';
  for await (const chunk of socket.setEncoding('utf8')) {
    call += chunk as string;
    if (call.length > MAX_CALL) throw new Error('the call is too long');
  }
  const outputs = { stdout: outputTo(socket, 'stdout'), stderr: outputTo(socket, 'stderr') };
  const code = await run(JSON.parse(call) as SentCommand, outputs);
  for (const output of [outputs.stdout, outputs.stderr]) await finished(output.end());
  socket.end(sentLine({ code }));
}

const sentLine = (message: Message): string => `${JSON.stringify(message)}\n`;

/** A command with much output waits for a slow caller. */
const outputTo = (socket: Socket, name: 'stdout' | 'stderr'): Writable =>
  new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      socket.write(sentLine(name === 'stdout' ? { stdout: text } : { stderr: text }), done);
    },
  });

async function close(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await rm(path, { force: true });
}

/** → the exit code; undefined if no server listens. */
export async function callServer(
  folder: string,
  call: SentCommand,
  { stdout, stderr }: Outputs,
): Promise<number | undefined> {
  const socket = connect(socketOf(folder));
  if (!(await isConnected(socket))) return undefined;
  socket.end(JSON.stringify(call));
  for await (const line of createInterface({ input: socket })) {
    const message = JSON.parse(line) as Message;
    if ('code' in message) return message.code;
    const isTaken = 'stdout' in message ? stdout.write(message.stdout) : stderr.write(message.stderr);
    if (isTaken === false) await once(stdout as Writable, 'drain');
  }
  throw new Error('the server ended before the command did');
}

const isConnected = (socket: Socket): Promise<boolean> =>
  new Promise((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
