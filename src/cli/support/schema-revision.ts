/** A schema of an argument: a file, `git:REV` (the path of the other argument at that revision), or `git:REV:path`. */
import { spawnSync } from 'node:child_process';
import { ConfigError } from '../../config.ts';
import { underlineIssue } from '../../schema/file/issue.ts';
import { parseSchema } from '../../schema/load.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Io } from './command.ts';
import { readSchemaFile } from './schema-file.ts';

const GIT = 'git:';

/** Throws ConfigError for a schema that cannot be used. */
export function schemaOfArgument(argument: string, other: string, io: Io): Schema {
  if (!argument.startsWith(GIT)) {
    const { schema, report } = readSchemaFile(argument, io, () => false);
    if (schema === undefined) throw new ConfigError([`\`${argument}\` cannot be used\n${report}`]);
    return schema;
  }
  const [revision = '', ...rest] = argument.slice(GIT.length).split(':');
  const path = rest.length > 0 ? rest.join(':') : other;
  if (path.startsWith(GIT))
    throw new ConfigError([
      `\`${argument}\` names no file; expected \`git:REV:path\`, because the other argument is none either`,
    ]);
  if (revision === '' || revision.startsWith('-'))
    throw new ConfigError([`\`${argument}\` names no revision; expected a form such as \`git:HEAD~1\``]);
  const text = textAtRevision(revision, path, io);
  const { schema, issues } = parseSchema(text, `${revision}:${path}`, io.env);
  if (schema === undefined) {
    const errors = issues.filter(({ severity }) => severity === 'error');
    const report = errors.map((issue) => underlineIssue(text, issue)).join('\n\n');
    throw new ConfigError([`\`${argument}\` cannot be used\n${report}`]);
  }
  return schema;
}

function textAtRevision(revision: string, path: string, { cwd }: Io): string {
  const { status, stdout, stderr, error } = spawnSync('git', ['show', `${revision}:./${path}`], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status === 0) return stdout;
  const reason = error === undefined ? stderr.trim() : error.message;
  throw new ConfigError([`git cannot show \`${path}\` at \`${revision}\`: ${reason}`]);
}
