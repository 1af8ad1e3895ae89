import { describe, expect, it } from 'vitest';
import { type Clause, explain, type Situation } from '../../../src/policy/analyse/explanation.ts';
import { compilePolicy } from '../../../src/policy/compile.ts';
import type { PolicyRequest, Related, Row } from '../../../src/policy/types.ts';
import { SAMPLE as catalog } from '../sample-catalog.ts';

const ME = '11111111-1111-4111-8111-111111111111';
const YOU = '33333333-3333-4333-8333-333333333333';
const REQUEST: PolicyRequest = {
  auth: { id: ME, roles: ['member'], department: null },
  query: { n: 'many', twice: ['a', 'b'], marks: ['x', '\0'] },
  now: '2026-01-01T00:00:00.000000Z',
};
const RECORD: Row = { id: 'd', title: 'plan', status: 'draft', score: null, pinned: false, owner: YOU, team: 'team' };
const RELATED: Related = {
  one: (_collection, id) => (id === 'team' ? { id: 'team', name: 'core', lead: null } : undefined),
  many: (_collection, relation) =>
    relation === 'memberships'
      ? [
          { id: 'm1', team: 'team', user: YOU, role: 'owner', note: null },
          { id: 'm2', team: 'team', user: ME, role: 'reader', note: 'x' },
        ]
      : [],
};
const situation = (text: string, record = RECORD): Situation => ({
  policy: compilePolicy(text, { catalog, collection: 'documents', action: 'list' }),
  request: REQUEST,
  record,
  related: RELATED,
});

const SENTENCES: readonly (readonly [text: string, sentence: string])[] = [
  ['@record.status = "draft"', 'allowed because `@record.status = "draft"` is true'],
  ['@record.status = "draft" and @record.pinned', 'denied because `@record.pinned` is false'],
  [
    '@record.pinned or @record.owner = @request.auth.id',
    'denied because `@record.pinned or @record.owner = @request.auth.id` is false',
  ],
  ['@record.pinned or @record.status = "draft"', 'allowed because `@record.status = "draft"` is true'],
  ['not (@record.status = "draft")', 'denied because `(@record.status = "draft")` is true'],
  ['@record.score > 1', 'denied because `@record.score > 1` is unknown: `@record.score` is null'],
  ['not (@record.score > 1)', 'denied because `(@record.score > 1)` is unknown: `@record.score` is null'],
  [
    '@record.score = @request.query.n',
    'denied because `@record.score = @request.query.n` is unknown: `@record.score` is null',
  ],
  [
    '@request.query.n = 5',
    'denied because `@request.query.n = 5` is unknown: `@request.query.n` cannot be read as int',
  ],
  [
    '@request.query.gone = "x"',
    'denied because `@request.query.gone = "x"` is unknown: `@request.query.gone` was not sent',
  ],
  [
    '@request.query.twice = "x"',
    'denied because `@request.query.twice = "x"` is unknown: `@request.query.twice` was sent more than once',
  ],
  [
    'not (@request.query.marks contains "y")',
    'denied because `(@request.query.marks contains "y")` is unknown: an element of `@request.query.marks` cannot be read',
  ],
  ['@record.cover.caption = "x"', 'denied because `@record.cover.caption = "x"` is unknown: there is no `cover`'],
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id and m.role = "owner")',
    'denied because `any(@record.team.memberships as m, m.user = @request.auth.id and m.role = "owner")` is false',
  ],
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id)',
    'allowed because `m.user = @request.auth.id` is true for memberships m2',
  ],
  [
    'none(@record.team.memberships as m, m.role = "owner")',
    'denied because `m.role = "owner"` is true for memberships m1',
  ],
  [
    'any(@record.team.memberships as m, m.role = "owner" or m.role = "reader")',
    'allowed because `m.role = "owner"` is true for memberships m1',
  ],
  [
    'none(@record.team.memberships as m, m.user is not null)',
    'denied because `m.user is not null` is true for memberships m1',
  ],
  [
    'all(@record.team.memberships as m, m.role = "guest")',
    'denied because `m.role = "guest"` is false for memberships m1',
  ],
  [
    'all(@record.team.memberships as m, m.user is not null)',
    'allowed because `all(@record.team.memberships as m, m.user is not null)` is true',
  ],
  [
    'all(@record.team.memberships as m, m.note = "x")',
    'denied because `m.note = "x"` is unknown for memberships m1: `m.note` is null',
  ],
];

describe('the sentence', () => {
  it.each(SENTENCES)('%s', (text, sentence) => {
    expect(explain(situation(text)).sentence).toBe(sentence);
  });
});

const valuesOf = (clause: Clause): unknown[] => [clause.text, clause.value, ...clause.parts.map(valuesOf)];

describe('explain', () => {
  it('an explanation gives the value of every clause, the residual and its SQL', () => {
    const explanation = explain(
      situation('@request.auth.roles contains "admin" or @record.owner = @request.auth.id and @record.score > 1'),
    );
    expect(valuesOf(explanation.clause)).toEqual([
      '@request.auth.roles contains "admin" or @record.owner = @request.auth.id and @record.score > 1',
      false,
      ['@request.auth.roles contains "admin"', false],
      [
        '@record.owner = @request.auth.id and @record.score > 1',
        false,
        ['@record.owner = @request.auth.id', false],
        ['@record.score > 1', undefined],
      ],
    ]);
    expect({ ...explanation, clause: undefined }).toEqual({
      allowed: false,
      sentence:
        'denied because `@request.auth.roles contains "admin" or @record.owner = @request.auth.id and @record.score > 1` is false',
      clause: undefined,
      residual: 'depends',
      sql: { text: '("record"."owner_id" = $1::uuid AND "record"."score" > 1::int8)', values: [ME] },
    });
  });

  it('an explanation gives the place and the sides of every comparison', () => {
    const { clause } = explain(situation('@record.score = 2 or @record.owner = @request.auth.id'));
    expect(clause.parts.map(({ offset, sides }) => [offset, sides])).toEqual([
      [0, { left: undefined, right: 2 }],
      [21, { left: YOU, right: ME }],
    ]);
  });

  it('an explanation has no SQL for a rule over two records', () => {
    const policy = compilePolicy('@record.owner = @next.owner', { catalog, collection: 'documents', action: 'update' });
    const { allowed, sql } = explain({
      ...situation('true'),
      policy,
      next: { ...RECORD, owner: ME },
    });
    expect([allowed, sql]).toEqual([false, undefined]);
  });

  it('an explanation of a create reads the members of the new record from itself, and does not find it among stored ones', () => {
    const at = { catalog, collection: 'documents', action: 'create' } as const;
    const record = { ...RECORD, tags: ['t1'], cover: null };
    const related: Related = {
      one: (_collection, id) => (id === 't1' ? { id, label: 'new' } : RELATED.one(_collection, id)),
      many: (_collection, relation) => (relation === 'tags' ? [{ id: 't2', label: 'old' }] : []),
    };
    const told = (text: string) => {
      const { allowed, sql } = explain({
        policy: compilePolicy(text, at),
        request: REQUEST,
        record,
        isWritten: true,
        related,
      });
      return [allowed, sql];
    };
    expect(told('any(@record.tags as t, t.label = "new")')).toEqual([true, undefined]);
    expect(told('any(@record.tags as t, t.label = "old")')).toEqual([false, undefined]);
    expect(told('@record.cover is null and none(@record.team.memberships as m, true)')).toEqual([true, undefined]);
  });

  it('an explanation agrees with the predicate', () => {
    const disagreeing = SENTENCES.map(([text]) => situation(text)).filter(
      ({ policy, request, record, related }) =>
        explain({ policy, request, record, related }).allowed !== policy.specialise(request).test(record, related),
    );
    expect(disagreeing).toEqual([]);
  });
});
