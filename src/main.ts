#!/usr/bin/env node
/** `bylaw <command> …` */

const { stdout, stderr, stdin, env } = process;

/**
 * Once a large block is freed, glibc gives memory back only beyond twice the size of that block: without this limit, in bytes, a
 * process that serves keeps 50 MiB more. The limit is read once, before Node begins: so the process replaces itself.
 */
const ALLOCATOR = { MALLOC_TRIM_THRESHOLD_: '1048576', ...env };
if (process.argv[2] === 'serve' && process.platform === 'linux' && env.MALLOC_TRIM_THRESHOLD_ === undefined) {
  const options = [...process.execArgv, ...process.argv.slice(1)];
  // A parent's channel would be lost.
  if (process.send === undefined) process.execve?.(process.execPath, [process.execPath, ...options], ALLOCATOR);
}

// The process that is replaced loads nothing else.
const { reasonOf, runCommand } = await import('./cli/index.ts');

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
