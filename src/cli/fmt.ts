/** `bylaw fmt`: the policies of the schema file in canonical form, and nothing else in it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError, readArguments } from '../config.ts';
import { formatPolicies } from '../schema/format.ts';
import { underlineIssue } from '../schema/issue.ts';
import { type Io, reportingConfigErrors } from './command.ts';

const FLAGS = { schema: { value: 'FILE' }, check: {} } as const;

export const command = reportingConfigErrors({
  name: 'fmt',
  summary: 'rewrite the policies of the schema file in canonical form [--schema FILE] [--check]',
  run,
});

async function run(argv: readonly string[], io: Io): Promise<number> {
  const flags = readArguments(argv, FLAGS);
  if (flags.positionals.length > 0) throw new ConfigError([`unexpected argument \`${flags.positionals[0]}\``]);
  const name = flags.get('schema') ?? io.env.BYLAW_SCHEMA ?? 'bylaw.yaml';
  const file = resolve(io.cwd, name);
  const before = read(file, name);
  const { text, changed, issues } = formatPolicies(before, name);
  if (issues.length > 0) {
    io.stderr.write(`${issues.map((issue) => underlineIssue(before, issue)).join('\n\n')}\n`);
    return 1;
  }
  for (const path of changed) io.stdout.write(`${path}\n`);
  if (flags.has('check')) return changed.length === 0 ? 0 : 1;
  if (changed.length > 0) writeFileSync(file, text);
  return 0;
}

function read(file: string, name: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new ConfigError([`${name} cannot be read: ${missing ? 'there is no such file' : (error as Error).message}`]);
  }
}
