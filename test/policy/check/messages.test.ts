/** The messages for authors of wrong policies, as data: messages.yaml. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import type { Action } from '../../../src/policy/types.ts';
import { SAMPLE } from '../sample-catalog.ts';

interface Message {
  readonly error?: string;
  readonly warning?: string;
  /** The characters that are underlined. */
  readonly marks: string;
  readonly says: string;
  /** The policy with the fix. */
  readonly fix?: string;
}
interface WrongPolicy {
  readonly policy: string;
  /** Default: list. */
  readonly action?: Action;
  readonly issues: readonly Message[];
}

const TABLE = parse(readFileSync(new URL('messages.yaml', import.meta.url), 'utf8')) as readonly WrongPolicy[];

const issuesOf = (policy: string, action: Action = 'list') =>
  examine(policy, { catalog: SAMPLE, collection: 'documents', action }).issues;

function messageOf({ severity, code, span, message, fix }: PolicyIssue, policy: string): Message {
  const fixed = fix && policy.slice(0, fix.span.start) + fix.replacement + policy.slice(fix.span.end);
  const marks = policy.slice(span.start, span.end);
  return { [severity]: code, marks, says: message, ...(fixed !== undefined && { fix: fixed }) };
}

describe('messages', () => {
  it.each(TABLE)('$policy', ({ policy, action, issues }) => {
    expect(issuesOf(policy, action).map((issue) => messageOf(issue, policy))).toEqual(issues);
  });

  it('fixes leave no error of their own', () => {
    for (const { action, issues } of TABLE) {
      const errors = issues.filter(({ error }) => error !== undefined).length;
      for (const { fix } of issues) {
        if (fix === undefined) continue;
        const left = issuesOf(fix, action).filter(({ severity }) => severity === 'error').length;
        expect(left, fix).toBeLessThan(Math.max(errors, 1));
      }
    }
  });

  it('no fix is a constant, or reads values that callers choose', () => {
    for (const { policy, action, issues } of TABLE) {
      for (const { fix } of issues) {
        if (fix === undefined) continue;
        const codes = issuesOf(fix, action).map(({ code }) => code);
        expect(codes, fix).not.toContain('never_true');
        // Every id is other than the empty string, and that is what the author says.
        if (!policy.endsWith('id != ""')) expect(codes, fix).not.toContain('always_true');
        expect(fix.includes('@request.query') && !policy.includes('query'), fix).toBe(false);
      }
    }
  });

  it('messages.yaml has many messages', () => {
    expect(TABLE.length).toBeGreaterThanOrEqual(96);
  });
});
