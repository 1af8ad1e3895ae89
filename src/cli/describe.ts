/** What the commands that print something of a schema have in common. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError, readArguments } from '../config.ts';
import { underlineIssue } from '../schema/issue.ts';
import { loadSchema } from '../schema/load-file.ts';
import type { Schema } from '../schema/model.ts';
import type { Io } from './command.ts';

export interface Describing {
  readonly argv: readonly string[];
  readonly io: Io;
  print(schema: Schema): string;
}

/** → 0, or 1 where the schema has errors, which go to stderr. */
export async function describeSchema({ argv, io, print }: Describing): Promise<number> {
  const flags = readArguments(argv, { schema: { value: 'FILE' } });
  if (flags.positionals.length > 0) throw new ConfigError([`unexpected argument \`${flags.positionals[0]}\``]);
  const file = flags.get('schema') ?? io.env.BYLAW_SCHEMA ?? 'bylaw.yaml';
  const { schema, issues } = loadSchema({ file: resolve(io.cwd, file), env: io.env });
  if (schema !== undefined) {
    io.stdout.write(print(schema));
    return 0;
  }
  const text = issues[0]?.code === 'no_file' ? '' : readFileSync(resolve(io.cwd, file), 'utf8');
  const errors = issues.filter(({ severity }) => severity === 'error');
  io.stderr.write(`${errors.map((issue) => underlineIssue(text, { ...issue, file })).join('\n\n')}\n`);
  return 1;
}
