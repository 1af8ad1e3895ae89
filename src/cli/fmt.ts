/** `bylaw fmt`: rewrites the policies of the schema file in canonical form, and nothing else in it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError, schemaFileOf } from '../config.ts';
import { formatPolicies } from '../schema/file/format-policies.ts';
import { underlineIssue } from '../schema/file/issue.ts';
import { utf8Text } from '../schema/file/utf8-text.ts';
import { pathReasonOf } from '../thrown.ts';
import type { Arguments, Command, Io } from './support/command.ts';

export const command: Command = {
  name: 'fmt',
  summary: 'rewrites the policies of the schema file in canonical form',
  settings: ['schema'],
  flags: { check: { about: 'writes nothing; exits with 1 if a policy would change' } },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const name = schemaFileOf(args.flags, io.env);
  const file = resolve(io.cwd, name);
  const before = readSchemaText(file, name);
  const { text, changed, issues } = formatPolicies(before, name);
  if (issues.length > 0) {
    io.stderr.write(`${issues.map((issue) => underlineIssue(before, issue)).join('\n\n')}\n`);
    return 2;
  }
  for (const path of changed) io.stdout.write(`${path}\n`);
  if (args.has('check')) return changed.length === 0 ? 0 : 1;
  if (changed.length > 0) writeFileSync(file, text);
  return 0;
}

function readSchemaText(file: string, name: string): string {
  try {
    return utf8Text(readFileSync(file));
  } catch (error) {
    throw new ConfigError([`${name} cannot be read: ${pathReasonOf(error)}`]);
  }
}
