/** Loads a schema file from disk. */
import { readFileSync } from 'node:fs';
import { codeOf, reasonOf } from '../../thrown.ts';
import { type Environment, type Loaded, parseSchema } from '../load.ts';

interface SchemaLocation {
  readonly file: string;
  readonly env: Environment;
}

export function loadSchema({ file, env }: SchemaLocation): Loaded {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const reason = codeOf(error) === 'ENOENT' ? 'the file does not exist' : reasonOf(error);
    const place = { file, line: 1, column: 1, end_line: 1, end_column: 1, path: '' };
    return {
      issues: [{ code: 'no_file', severity: 'error', message: `the schema cannot be read: ${reason}`, ...place }],
    };
  }
  return parseSchema(text, file, env);
}
