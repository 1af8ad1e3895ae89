#!/usr/bin/env node
/** `bylaw <command> …` */
import { messageOf, runCommand } from './cli/index.ts';

const { stdout, stderr, stdin, env } = process;

try {
  process.exitCode = await runCommand(process.argv.slice(2), { stdout, stderr, stdin, env, cwd: process.cwd() });
} catch (error) {
  stderr.write(`bylaw: ${messageOf(error)}\n`);
  if (env.DEBUG !== undefined && error instanceof Error) stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
}
