/** Keeps only those fixes of issues that help. */
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { MOST_ISSUES } from '../../../grammar/read-tokens.ts';

/** Trying a fix costs a parse and a check; a text with many errors must not take longer than one with few. */
const triedFixes = (issues: number): number => Math.min(6, Math.ceil(MOST_ISSUES / issues));

/**
 * Offers a fix only where the text with it has fewer errors (or, of a text with warnings only, no
 * error and fewer warnings).
 */
export function withProvenFixes(
  issues: readonly PolicyIssue[],
  text: string,
  examine: (text: string) => readonly PolicyIssue[],
): readonly PolicyIssue[] {
  const before = tally(issues);
  let left = triedFixes(issues.length);
  return issues.map((issue) => {
    const { fix, ...rest } = issue;
    if (fix === undefined) return issue;
    if (left-- <= 0) return rest;
    const fixed = text.slice(0, fix.span.start) + fix.replacement + text.slice(fix.span.end);
    const after = tally(examine(fixed));
    const better =
      issue.severity === 'error'
        ? after.errors < before.errors
        : after.errors === 0 && after.warnings < before.warnings;
    return better ? issue : rest;
  });
}

interface Tally {
  readonly errors: number;
  readonly warnings: number;
}

function tally(issues: readonly PolicyIssue[]): Tally {
  const errors = issues.filter((issue) => issue.severity === 'error').length;
  return { errors, warnings: issues.length - errors };
}
