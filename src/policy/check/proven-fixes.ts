/** Keeps only those fixes of issues that help. */
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { MOST_ISSUES } from '../../../grammar/read-tokens.ts';
import type { Span } from '../../../grammar/syntax.ts';

/** The limit of all tries, in UTF-16 units: a single text of the greatest length. */
const MOST_TRIED = 4096;

/**
 * Trying a fix costs a parse and a check of the whole text. Neither many errors nor a long text may
 * make an answer slow.
 */
const triedFixes = (issues: number, text: string): number =>
  Math.min(6, Math.ceil(MOST_ISSUES / issues), Math.max(1, Math.floor(MOST_TRIED / text.length)));

/**
 * Offers a fix only where the text with it has fewer errors, none of them in what the fix wrote (or, of
 * a text with warnings only, no error and fewer warnings).
 */
export function withProvenFixes(
  issues: readonly PolicyIssue[],
  text: string,
  examine: (text: string) => readonly PolicyIssue[],
): readonly PolicyIssue[] {
  const before = tally(issues);
  let tries = triedFixes(issues.length, text);
  return issues.map((issue) => {
    const { fix, ...rest } = issue;
    if (fix === undefined) return issue;
    if (tries-- <= 0) return rest;
    const fixed = text.slice(0, fix.span.start) + fix.replacement + text.slice(fix.span.end);
    const left = examine(fixed);
    const after = tally(left);
    const written = { start: fix.span.start, end: fix.span.start + fix.replacement.length };
    const better =
      issue.severity === 'error'
        ? after.errors < before.errors && !left.some((other) => isErrorWithin(other, written))
        : after.errors === 0 && after.warnings < before.warnings;
    return better ? issue : rest;
  });
}

const isErrorWithin = ({ severity, span }: PolicyIssue, { start, end }: Span): boolean =>
  severity === 'error' && span.start >= start && span.end <= end;

interface Tally {
  readonly errors: number;
  readonly warnings: number;
}

function tally(issues: readonly PolicyIssue[]): Tally {
  const errors = issues.filter((issue) => issue.severity === 'error').length;
  return { errors, warnings: issues.length - errors };
}
