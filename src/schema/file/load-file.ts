/** Loads a schema file from disk. */
import { readFileSync } from 'node:fs';
import { codeOf, pathReasonOf } from '../../thrown.ts';
import { type Environment, type Loaded, parseSchema } from '../load.ts';
import type { SchemaIssue } from './issue.ts';
import { NotUtf8, utf8Text } from './utf8-text.ts';

interface SchemaLocation {
  readonly file: string;
  readonly env: Environment;
}

export function loadSchema({ file, env }: SchemaLocation): Loaded {
  let text: string;
  try {
    text = utf8Text(readFileSync(file));
  } catch (error) {
    return { issues: [unreadable(file, error)] };
  }
  return parseSchema(text, file, env);
}

function unreadable(file: string, error: unknown): SchemaIssue {
  const reason = codeOf(error) === 'ENOENT' ? 'the file does not exist' : pathReasonOf(error);
  const [code, { line, column }] =
    error instanceof NotUtf8 ? ['not_utf8', error.place] : ['no_file', { line: 1, column: 1 }];
  const place = { line, column, end_line: line, end_column: column };
  return { code, severity: 'error', message: `the schema cannot be read: ${reason}`, file, ...place, path: '' };
}
