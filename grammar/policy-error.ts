import type { Span } from './syntax.ts';

/** A replacement of the text at `span` that was itself compiled before it was offered. */
export interface Fix {
  readonly span: Span;
  readonly replacement: string;
}

/**
 * An error or warning about a policy's text. `code` is stable for ever (lower snake case); `message` is lower
 * case, without a full stop, and holds what was found, what was expected and the nearest name. `path` is e.g.
 * `collections.posts.access.list[1].when` (set by the schema room).
 */
export interface PolicyIssue {
  readonly code: string;
  readonly severity: 'error' | 'warning';
  readonly message: string;
  readonly span: Span;
  readonly fix?: Fix;
  /** The first suggestion of the message, for tests. */
  readonly suggestion?: string;
}

/** The suggestion to replace the span, and the fix that does; none without a replacement. */
export const replacing = (span: Span, replacement: string | undefined): Pick<PolicyIssue, 'suggestion' | 'fix'> =>
  replacement === undefined ? {} : { suggestion: replacement, fix: { span, replacement } };

/** 1-based line and column (in UTF-16 units) of an offset. */
export function lineAndColumn(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return { line, column: offset - (before.lastIndexOf('\n') + 1) + 1 };
}

/** Thrown by the convenience forms (`compile`), which have no place to return a list. */
export class PolicyError extends Error {
  readonly issues: readonly PolicyIssue[];
  readonly text: string;

  constructor(text: string, issues: readonly PolicyIssue[]) {
    super(issues.map((issue) => underline(text, issue)).join('\n'));
    this.name = 'PolicyError';
    this.text = text;
    this.issues = issues;
  }
}

/** The message, the line of the text, and a caret under every character of the span. */
export function underline(text: string, issue: PolicyIssue): string {
  const { line, column } = lineAndColumn(text, issue.span.start);
  const source = text.split('\n')[line - 1] ?? '';
  const width = Math.max(1, Math.min(issue.span.end - issue.span.start, source.length - column + 1));
  return `${issue.severity}[${issue.code}]: ${issue.message}\n  ${source}\n  ${' '.repeat(column - 1)}${'^'.repeat(width)}`;
}
