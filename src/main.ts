#!/usr/bin/env node
/** `bylaw <command> …` */
import { reasonOf, runCommand } from './cli/index.ts';

const { stdout, stderr, stdin, env } = process;
/** 128 + SIGPIPE, as a shell reports it. */
const READER_GONE = 141;

/** The exit code once the output cannot be written. */
let outputError: number | undefined;
stdout.on('error', (error: NodeJS.ErrnoException) => {
  // `bylaw openapi | head`: a reader that closes early is not an error. The command finishes silently.
  if (error.code !== 'EPIPE') stderr.write(`bylaw: the output cannot be written (${error.code})\n`);
  outputError = error.code === 'EPIPE' ? READER_GONE : 1;
  process.exitCode = outputError;
});
// There is nowhere left to report it.
stderr.on('error', () => undefined);

try {
  const code = await runCommand(process.argv.slice(2), { stdout, stderr, stdin, env, cwd: process.cwd() });
  process.exitCode = outputError ?? code;
} catch (error) {
  stderr.write(`bylaw: ${reasonOf(error)}\n`);
  if (env.DEBUG !== undefined && error instanceof Error) stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
}
