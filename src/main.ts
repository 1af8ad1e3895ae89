#!/usr/bin/env node
/** `bylaw <command> …` */

import { getHeapStatistics, setFlagsFromString } from 'node:v8';

const { stdout, stderr, stdin, env } = process;

/**
 * Settings that glibc reads once, before Node begins, so that the process replaces itself. Once a large block is freed, glibc gives
 * memory back only beyond twice the size of that block: without a threshold in bytes, a process that serves keeps 50 MiB more.
 * Without a bound of arenas, each thread keeps one of its own: 60 MiB more after floods of long requests.
 */
const MALLOC = { MALLOC_TRIM_THRESHOLD_: '1048576', MALLOC_ARENA_MAX: '2' };
/**
 * MiB of each half of the young generation. V8 lets it grow to 64 in a heap of 4 GiB, for no speed, and chooses less in a
 * small heap. Half as much serves as fast beside an embedded engine, which takes most of the time.
 */
const SEMI_SPACE_OPTION = '--max-semi-space-size';
const isEmbedded = !env.DATABASE_URL && !process.argv.some((arg) => arg.startsWith('--database-url'));
const HALF_MIB = isEmbedded ? 16 : 32;
/** Bytes of the heap in which V8's own choice is more. */
const LARGE_HEAP = 2.25 * 1_073_741_824;
const isServing = process.argv[2] === 'serve' && process.platform === 'linux';
// A process that has a parent's channel would lose it.
if (isServing && env.MALLOC_TRIM_THRESHOLD_ === undefined && process.send === undefined) {
  const isLarge = getHeapStatistics().heap_size_limit > LARGE_HEAP;
  const halves = isLarge && !env.NODE_OPTIONS?.includes(SEMI_SPACE_OPTION) ? [`${SEMI_SPACE_OPTION}=${HALF_MIB}`] : [];
  const args = [process.execPath, ...halves, ...process.execArgv, ...process.argv.slice(1)];
  process.execve?.(process.execPath, args, { ...MALLOC, ...env });
}
// The option would replace the limits that threads are given.
setFlagsFromString(`${SEMI_SPACE_OPTION}=0`);

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
