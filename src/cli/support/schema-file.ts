/** The schema file as commands read it: its issues name the file as the user typed it. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { growthNotes } from '../../schema/advice/growth-notes.ts';
import { loadSchema } from '../../schema/file/load-file.ts';
import { type SchemaIssue, underlineIssue } from '../../schema/issue.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Io } from './command.ts';

export interface CheckedSchemaFile {
  /** Absent where there is an error. */
  readonly schema?: Schema;
  readonly issues: readonly SchemaIssue[];
  /** Each issue with its line, underlined. */
  readonly report: string;
}

/** Of a file without errors. */
export function readGrowthNotes(
  { schema }: CheckedSchemaFile,
  { cwd }: Io,
): Pick<CheckedSchemaFile, 'issues' | 'report'> {
  if (schema === undefined) return { issues: [], report: '' };
  const path = resolve(cwd, schema.file);
  const issues = growthNotes(schema, readFileSync(path, 'utf8'));
  return { issues, report: underlineIssues(path, issues) };
}

export function readSchemaFile(file: string, { cwd, env }: Io): CheckedSchemaFile {
  const path = resolve(cwd, file);
  const loaded = loadSchema({ file: path, env });
  const issues = loaded.issues.map((issue) => ({ ...issue, file }));
  const schema = loaded.schema && { ...loaded.schema, file };
  return { schema, issues, report: underlineIssues(path, issues) };
}

function underlineIssues(path: string, issues: readonly SchemaIssue[]): string {
  if (issues.length === 0) return '';
  const text = issues.some(({ code }) => code === 'no_file') ? '' : readFileSync(path, 'utf8');
  return `${issues.map((issue) => underlineIssue(text, issue)).join('\n\n')}\n`;
}
