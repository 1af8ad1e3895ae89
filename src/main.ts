#!/usr/bin/env node
/** `bylaw <command> …` */

const { stdout, stderr, stdin, env } = process;

/**
 * Once a large block is freed, glibc gives memory back only beyond twice the size of that block: without this limit, in bytes, a
 * process that serves keeps 50 MiB more. glibc reads the limit once, before Node begins, so the process replaces itself.
 */
const TRIM_THRESHOLD = '1048576';
const isServing = process.argv[2] === 'serve' && process.platform === 'linux';
// A process that has a parent's channel would lose it.
if (isServing && env.MALLOC_TRIM_THRESHOLD_ === undefined && process.send === undefined) {
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve?.(process.execPath, args, { ...env, MALLOC_TRIM_THRESHOLD_: TRIM_THRESHOLD });
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
