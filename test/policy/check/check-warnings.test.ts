/** Policies that compile but are probably not intended: the code, the underlined text, and the policy with its fix. */
import { describe, expect, it } from 'vitest';
import { examine } from '../../../src/policy/check/checker.ts';
import { SAMPLE } from '../sample-catalog.ts';

// The warnings about callers are for rules without roles: test/schema/mistakes.test.ts.
const context = { catalog: SAMPLE, collection: 'documents', action: 'update', roles: ['member'] } as const;
type Expected = readonly [code: string, underlined: string, fixed?: string];

function warningsOf(text: string): Expected[] {
  const { checked, issues } = examine(text, context);
  expect(checked).toBeDefined();
  return issues.map(({ code, severity, span, fix }) => {
    expect(severity).toBe('warning');
    const underlined = text.slice(span.start, span.end);
    if (fix === undefined) return [code, underlined];
    return [code, underlined, text.slice(0, fix.span.start) + fix.replacement + text.slice(fix.span.end)];
  });
}

describe('absence under a negation', () => {
  it.each<[string, Expected[]]>([
    [
      '@record.score != 5',
      [['negation_of_nullable', '@record.score', '(@record.score is not null and @record.score != 5)']],
    ],
    [
      'not (@record.score = 5)',
      [['negation_of_nullable', '@record.score', '(@record.score is not null and not (@record.score = 5))']],
    ],
    ['not (@request.query.mode = "x")', [['negation_of_nullable', '@request.query.mode']]],
    ['@request.data.status != "published"', [['negation_of_nullable', '@request.data.status']]],
    [
      '@record.team.name not in ["a"]',
      [
        [
          'negation_of_nullable',
          '@record.team.name',
          '(@record.team.name is not null and @record.team.name not in ["a"])',
        ],
      ],
    ],
    ['none(@record.tags as t, t.label = "x" and @record.score > 3)', [['negation_of_nullable', '@record.score']]],
    ['none(@record.team.memberships as m, m.role = "owner")', [['negation_of_nullable', '@record.team.memberships']]],
    [
      'not any(@record.team.memberships as m, m.role = "owner")',
      [['negation_of_nullable', '@record.team.memberships']],
    ],
  ])('%s', (policy, expected) => {
    expect(warningsOf(policy)).toEqual(expected);
  });

  it.each([
    '@record.status != "draft"',
    '@record.owner != @request.auth.id',
    '@record.score is null or @record.score != 5',
    '@record.score is not null and @record.score != 5',
    '@record.score = 5',
    'not (@record.score != 5)',
    'none(@record.tags as t, t.label = "x")',
    'not none(@record.team.memberships as m, m.role = "owner")',
    'any(@record.team.memberships as m, m.role = "owner")',
    'count(@record.tags as t, all(@record.tags as u, u.label = t.label)) = 0',
  ])('the checker accepts silently %s', (policy) => {
    expect(warningsOf(policy)).toEqual([]);
  });
});

describe('constant conditions', () => {
  it.each<[string, Expected[]]>([
    ['1 = 1', [['always_true', '1 = 1']]],
    ['"a" starts with "b"', [['never_true', '"a" starts with "b"']]],
    ['@record.pinned or true', [['always_true', 'true']]],
    ['@record.status in []', [['never_true', '@record.status in []']]],
    ['@record.status = "publishd"', [['enum_unknown', '"publishd"', '@record.status = "published"']]],
    ['@record.score = 1.5', [['never_true', '@record.score = 1.5']]],
    ['@record.rating = 1e400', [['never_true', '@record.rating = 1e400']]],
    ['@record.rating = 1e300', []],
    ['@record.title is null', [['never_true', '@record.title is null']]],
    ['@record.id is not null', [['always_true', '@record.id is not null']]],
    ['@record.score = @record.score', [['same_operands', '@record.score = @record.score']]],
    ['@record.status = "draft" and @record.status = "published"', [['never_true', '@record.status = "published"']]],
    ['@record.status != "draft" or @record.status != "published"', [['always_true', '@record.status != "published"']]],
    [
      'not (true or @record.pinned)',
      [
        ['never_allows', 'not (true or @record.pinned)'],
        ['always_true', 'true'],
      ],
    ],
    ['@request.auth.id is null', [['anonymous_only', '@request.auth.id is null']]],
  ])('%s', (policy, expected) => {
    expect(warningsOf(policy)).toEqual(expected);
  });

  it.each([
    'true',
    'false',
    'any(@record.tags as t, true)',
    '@request.auth.id is not null',
    '@record.team is null',
    '@record.score >= 1.5',
  ])('the checker accepts silently %s', (policy) => {
    expect(warningsOf(policy)).toEqual([]);
  });
});

describe('other traps', () => {
  it.each<[string, Expected[]]>([
    [
      'all(@record.tags as t, t.label = "x")',
      [['all_of_none', 'all', '(any(@record.tags as y, true) and all(@record.tags as t, t.label = "x"))']],
    ],
    [
      '@record.title contains @request.query.q',
      [
        [
          'needle_from_request',
          '@request.query.q',
          '(@request.query.q != "" and @record.title contains @request.query.q)',
        ],
      ],
    ],
    ['@request.query.since > "2024-01-01"', [['date_as_text', '"2024-01-01"']]],
  ])('%s', (policy, expected) => {
    expect(warningsOf(policy)).toEqual(expected);
  });

  it.each([
    'not (@record.title contains @request.query.q)',
    'none(@record.tags as t, t.label contains @request.query.q)',
  ])('the checker asks for no text in the needle of %s, which an empty one denies', (policy) => {
    expect(warningsOf(policy).map(([code]) => code)).toEqual(['negation_of_nullable']);
  });

  it.each([
    'any(@record.tags as t, true) and all(@record.tags as t, t.label = "x")',
    '@request.query.q != "" and @record.title contains @request.query.q',
    '@record.tags contains @request.query.tag',
    '@request.query.tags contains "x"',
    '@request.auth.email_verified and @record.title starts with @request.auth.email',
    '@record.due_at > @request.query.since',
    // Within a count, more may be less.
    'count(@record.tags as t, t.label contains @request.query.q) = 0',
  ])('the checker accepts silently %s', (policy) => {
    expect(warningsOf(policy)).toEqual([]);
  });
});
