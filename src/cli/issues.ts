/** Faults and warnings of a schema file as a person reads them. */
import { readFileSync } from 'node:fs';
import { type SchemaIssue, underlineIssue } from '../schema/issue.ts';

/** `path`: where the file is, which need not be how the issues name it. */
export function underlineIssues(path: string, issues: readonly SchemaIssue[]): string {
  const text = issues.some(({ code }) => code === 'no_file') ? '' : readFileSync(path, 'utf8');
  return `${issues.map((issue) => underlineIssue(text, issue)).join('\n\n')}\n\n`;
}
