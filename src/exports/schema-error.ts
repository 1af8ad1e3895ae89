import type { SchemaIssue } from '../schema/file/issue.ts';

/** All errors of a schema, each with its place. */
export class SchemaError extends Error {
  readonly issues: readonly SchemaIssue[];

  constructor(issues: readonly SchemaIssue[]) {
    super(issues.map(({ line, column, message }) => `${line}:${column}: ${message}`).join('\n'));
    this.name = 'SchemaError';
    this.issues = issues;
  }
}
