#!/usr/bin/env node
/** `bylaw <command> …` */
import { messageOf, runCommand } from './cli/index.ts';

const { stdout, stderr, stdin, env } = process;
/** What a shell says of a program that SIGPIPE ended. */
const READER_GONE = 141;

let unsaid: number | undefined;
stdout.on('error', (error: NodeJS.ErrnoException) => {
  // `bylaw openapi | head`: a reader that has seen enough is no fault. The command finishes what it does; nobody hears more of it.
  if (error.code !== 'EPIPE') stderr.write(`bylaw: the output cannot be written (${error.code})\n`);
  unsaid = error.code === 'EPIPE' ? READER_GONE : 1;
  process.exitCode = unsaid;
});
// There is nobody left to tell.
stderr.on('error', () => undefined);

try {
  const code = await runCommand(process.argv.slice(2), { stdout, stderr, stdin, env, cwd: process.cwd() });
  process.exitCode = unsaid ?? code;
} catch (error) {
  stderr.write(`bylaw: ${messageOf(error)}\n`);
  if (env.DEBUG !== undefined && error instanceof Error) stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
}
