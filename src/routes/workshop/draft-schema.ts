/** Reads the text of a schema that a request has. Not a route. */
import { addError, type ErrorDetail, Problem } from '../../problem.ts';
import type { SchemaIssue } from '../../schema/file/issue.ts';
import { parseSchema } from '../../schema/load.ts';
import type { Schema } from '../../schema/model/model.ts';

/** UTF-8 bytes of a body with texts of schemas or tests. */
export const MOST_TEXT_BYTES = 1 << 20;

/** Answers for every name: the text of a request must not find out which variables this process has. */
export const ANY_VARIABLE: Readonly<Record<string, string>> = new Proxy({}, { get: () => 'a secret' });

/** Throws `validation_failed` with every error of the text at its place. */
export function readDraftSchema(text: string, file: string): Schema {
  const { schema, issues } = parseSchema(text, file, ANY_VARIABLE);
  if (schema !== undefined) return schema;
  const wrong = issues.filter(({ severity }) => severity === 'error');
  const errors = textErrors(text, { pointer: '/text', issues: wrong });
  throw new Problem('validation_failed', 'the text is not a schema', { errors });
}

interface TextIssues {
  readonly pointer: string;
  readonly issues: readonly SchemaIssue[];
}

/** Issues of a text as errors at their characters. */
export function textErrors(text: string, { pointer, issues }: TextIssues): readonly ErrorDetail[] {
  const lines = lineStarts(text);
  const errors: ErrorDetail[] = [];
  for (const { code, message, line, column, end_line, end_column } of issues) {
    const offset = (lines[line - 1] ?? 0) + column - 1;
    const length = (lines[end_line - 1] ?? 0) + end_column - 1 - offset;
    addError(errors, { pointer, code, detail: `line ${line}: ${message}`, offset, length });
  }
  return errors;
}

function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (const { index } of text.matchAll(/\n/g)) starts.push(index + 1);
  return starts;
}
