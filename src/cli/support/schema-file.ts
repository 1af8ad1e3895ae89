/** Reads the schema file for commands: issues name the file as the user typed it. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { MailTemplates, type TemplateIssue } from '../../auth/mail/mail-templates.ts';
import { schemaFileOf } from '../../config.ts';
import { growthNotes } from '../../schema/advice/growth-notes.ts';
import { type SchemaIssue, underlineIssue } from '../../schema/file/issue.ts';
import { loadSchema } from '../../schema/file/load-file.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Arguments, Io } from './command.ts';

export interface CheckedSchemaFile {
  /** Absent if there is an error. */
  readonly schema?: Schema;
  readonly issues: readonly SchemaIssue[];
  /** Each issue with its line, underlined. */
  readonly report: string;
}

/** Reads the notes on growth, of which `isShown` selects; a file with errors has none. */
export function readGrowthNotes(
  { schema }: CheckedSchemaFile,
  { cwd }: Io,
  isShown: IssueFilter,
): Pick<CheckedSchemaFile, 'issues' | 'report'> {
  if (schema === undefined) return { issues: [], report: '' };
  const path = resolve(cwd, schema.file);
  const issues = growthNotes(schema, readFileSync(path, 'utf8')).filter(isShown);
  return { issues, report: underlineIssues(path, issues) };
}

export type IssueFilter = (issue: SchemaIssue) => boolean;

/** `isShown`: the warnings of the report, which has every error. */
export function readSchemaFile(
  file: string,
  { cwd, env }: Pick<Io, 'cwd' | 'env'>,
  isShown: IssueFilter = () => true,
): CheckedSchemaFile {
  const path = resolve(cwd, file);
  const loaded = loadSchema({ file: path, env });
  const issues = loaded.issues.map((issue) => ({ ...issue, file }));
  const schema = loaded.schema && { ...loaded.schema, file };
  const shown = issues.filter((issue) => issue.severity === 'error' || isShown(issue));
  const report = underlineIssues(path, shown);
  const failing = schema === undefined ? [] : MailTemplates.load(schema, cwd).issues.map(templateIssue);
  if (failing.length === 0) return { schema, issues, report };
  const lines = failing.map((issue) => `${issue.file}: error: ${issue.message}\n`).join('');
  return { issues: [...issues, ...failing], report: report === '' ? lines : `${report}\n${lines}` };
}

/** An error of a template, which has no place in the schema file. */
function templateIssue({ file, message }: TemplateIssue): SchemaIssue {
  const place = { line: 1, column: 1, end_line: 1, end_column: 1 };
  return { code: 'mail_template', severity: 'error', message, file, path: 'mail.templates', ...place };
}

function underlineIssues(path: string, issues: readonly SchemaIssue[]): string {
  if (issues.length === 0) return '';
  const text = issues.some(({ code }) => code === 'no_file') ? '' : readFileSync(path, 'utf8');
  return `${issues.map((issue) => underlineIssue(text, issue)).join('\n\n')}\n`;
}

/** Prints something of the schema. → 0, or 2 if the schema has errors, which go to stderr. */
export function printSchema(args: Arguments, io: Io, print: (schema: Schema) => string): number {
  const { schema, report } = readSchemaFile(schemaFileOf(args.flags, io.env), io);
  if (schema === undefined) io.stderr.write(report);
  else io.stdout.write(print(schema));
  return schema === undefined ? 2 : 0;
}
