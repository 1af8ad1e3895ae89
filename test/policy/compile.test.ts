import { describe, expect, it } from 'vitest';
import { PolicyError } from '../../grammar/policy-error.ts';
import { WITHIN } from '../../grammar/tokens.ts';
import { OPERATOR_NOTES } from '../../scripts/docs/word-notes.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import { OPERATORS } from '../../src/policy/operators.ts';
import type { Policy, PolicyRequest } from '../../src/policy/types.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const ME = '11111111-1111-4111-8111-111111111111';
const NOW = '2026-01-01T00:00:00.000000Z';
const at = { catalog, collection: 'documents', action: 'list' } as const;
const request = (given: Partial<PolicyRequest> = {}): PolicyRequest => ({
  auth: { id: ME, roles: ['member'] },
  query: {},
  now: NOW,
  ...given,
});
const verdictOf = (text: string, given: Partial<PolicyRequest> = {}) =>
  compilePolicy(text, at).specialise(request(given)).verdict;
const whereOf = (text: string, given: Partial<PolicyRequest> = {}) => {
  const { text: sql, values } = compilePolicy(text, at).specialise(request(given)).where('d');
  return [sql, ...values];
};

describe('compile', () => {
  it('compile throws every error of the text, underlined', () => {
    const failing = () => compilePolicy('@record.titel = "x" or @record.scor = 1', at);
    expect(failing).toThrow(PolicyError);
    expect(failing).toThrow(/titel[\s\S]*\^\^\^\^\^[\s\S]*scor/);
  });

  it('a policy keeps its text, and reports if it names @next', () => {
    const update = { ...at, action: 'update' } as const;
    const policies = ['@record.pinned', '@next.pinned', 'any(@next.tags as t, t.label = "x")'].map((text) =>
      compilePolicy(text, update),
    );
    expect(policies.map(({ text, namesNext }) => [text, namesNext])).toEqual([
      ['@record.pinned', false],
      ['@next.pinned', true],
      ['any(@next.tags as t, t.label = "x")', true],
    ]);
  });
});

describe('decisions by the request alone', () => {
  const DECIDED: readonly (readonly [text: string, given: Partial<PolicyRequest>, verdict: string])[] = [
    ['@request.auth.roles contains "member"', {}, 'allow'],
    ['@request.auth.roles contains "admin"', {}, 'deny'],
    ['not (@request.auth.roles contains "admin")', {}, 'allow'],
    ['@request.auth.roles contains "admin"', { auth: { id: ME, roles: [] } }, 'deny'],
    ['not (@request.auth.roles contains "admin")', { auth: { id: ME, roles: [] } }, 'allow'],
    ['not (@request.auth.roles contains "admin")', { auth: { id: ME } }, 'deny'],
    ['not (@request.auth.roles contains "admin")', { auth: null }, 'deny'],
    ['@request.query.mode = "x"', { query: { mode: 'x' } }, 'allow'],
    ['not (@request.query.mode = "x")', { query: { mode: 'y' } }, 'allow'],
    ['not (@request.query.mode = "x")', {}, 'deny'],
    ['not (@request.query.mode = "x")', { query: { mode: ['y', 'z'] } }, 'deny'],
    ['not (@request.query.mode = "x")', { query: { mode: '\ud800' } }, 'deny'],
    ['@request.query.constructor is null', {}, 'allow'],
    ['@request.query.mode is null', { query: { mode: 'y' } }, 'deny'],
    ['@request.query.n = 5', { query: { n: '5' } }, 'allow'],
    ['@request.query.n = 5', { query: { n: '05' } }, 'deny'],
    ['@request.query.n < 9007199254740993', { query: { n: '9007199254740992' } }, 'allow'],
    ['@request.query.n in [1, 2]', { query: { n: '2' } }, 'allow'],
    ['@request.query.tags contains "a"', { query: { tags: 'a' } }, 'allow'],
    ['@request.query.tags contains "a"', { query: { tags: ['b', 'a'] } }, 'allow'],
    ['not (@request.query.tags contains "a")', { query: { tags: ['b'] } }, 'allow'],
    ['not (@request.query.tags contains "a")', { query: { tags: ['b', '\0'] } }, 'deny'],
    ['@request.query.since < @now - 24h', { query: { since: '2025-12-30T23:59:59Z' } }, 'allow'],
    ['@request.query.since < @now - 24h', { query: { since: '2025-12-31T00:00:00Z' } }, 'deny'],
    ['@record.score in []', {}, 'deny'],
    ['@record.score not in []', {}, 'allow'],
    ['@record.title = @request.query.q', {}, 'deny'],
    ['not (@record.title = @request.query.q)', {}, 'deny'],
    ['@record.score in @request.query.n', { query: { n: ['x'] } }, 'deny'],
    ['@record.score not in @request.query.n', { query: { n: ['x', '1'] } }, 'deny'],
    ['@record.pinned and @request.auth.roles contains "admin"', {}, 'deny'],
    ['@record.pinned or @request.auth.roles contains "member"', {}, 'allow'],
    ['@record.pinned', {}, 'depends'],
  ];
  it.each(DECIDED)('%s with %o: %s', (text, given, verdict) => {
    expect(verdictOf(text, given)).toBe(verdict);
  });

  it('a record as the argument of a condition is its id', () => {
    const rulesOf = (...[record, next, caller]: readonly string[]) => {
      const { schema } = parseSchema(
        `
roles: { member: {} }
conditions:
  'is_own(task: tasks)': 'task.owner = @request.auth.id'
  'is_same(one: users, other: users)': 'one = other'
collections:
  tasks:
    relations: { owner: { kind: belongs_to, collection: users } }
    access: { list: 'is_own(${record})', update: 'is_own(${next}) and is_same(${caller}, @record.owner)' }
`,
        'tasks.yaml',
      );
      const { list, update } = schema!.collections.get('tasks')!.access;
      const residualOf = ([rule]: readonly Policy[]) => rule!.specialise(request());
      return [residualOf(list).where('t'), residualOf(update).where('t', 'next')].map((where) => where.text);
    };
    const [short, long] = [
      ['@record', '@next', '@request.auth'],
      ['@record.id', '@next.id', '@request.auth.id'],
    ];
    expect(rulesOf(...short!)).toEqual(rulesOf(...long!));
    expect(rulesOf(...short!)[0]).toContain('owner_id');
  });

  it('specialising leaves the conditions on the record', () => {
    const text =
      '@request.query.mine = "yes" and @record.owner = @request.auth.id or @record.score in @request.query.n';
    expect([
      whereOf(text, { query: { mine: 'yes' } }),
      whereOf(text, { query: { n: ['3', 'x'] } }),
      whereOf(text, { query: { mine: 'yes', n: '4' } }),
    ]).toEqual([
      ['"d"."owner_id" = $1::uuid', ME],
      ['"d"."score" = ANY($1::int8[])', [3]],
      ['("d"."owner_id" = $1::uuid OR "d"."score" = ANY($2::int8[]))', ME, [4]],
    ]);
  });

  it('a residual declares the records to load', () => {
    const policy = compilePolicy(
      '@request.query.team = "yes" and any(@record.team.memberships as m, m.user.email = "x") or @record.cover.caption = "c"',
      at,
    );
    const cover = { relation: 'cover', needs: [] };
    const members = { relation: 'memberships', needs: [{ relation: 'user', needs: [] }] };
    const needs = [{}, { query: { team: 'yes' } }].map((given) => policy.specialise(request(given)).needs.record);
    expect(needs[0]).toEqual([cover]);
    expect(needs[1]).toHaveLength(2);
    expect(needs[1]).toEqual(expect.arrayContaining([cover, { relation: 'team', needs: [members] }]));
  });

  it('a policy recomputes evicted residuals', () => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    const policy = compilePolicy(keys.map((key) => `@record.score = @request.query.${key}`).join(' or '), at);
    const queries = Array.from({ length: 64 }, (_, n) =>
      Object.fromEntries(keys.filter((_key, i) => n & (1 << i)).map((key) => [key, '1'])),
    );
    const branches = () => queries.map((query) => policy.specialise(request({ query })).where('d').values.length);
    const expected = queries.map((query) => Object.keys(query).length);
    expect([branches(), branches()]).toEqual([expected, expected]);
  });
});

describe('the table of operators', () => {
  it('complements and mirrors of operators undo themselves', () => {
    for (const { symbol, complement, mirror } of Object.values(OPERATORS)) {
      if (complement !== undefined) expect(OPERATORS[complement].complement).toBe(symbol);
      if (mirror !== undefined) expect(OPERATORS[mirror].mirror).toBe(symbol);
    }
  });

  it('the examples of operators compile', () => {
    for (const { symbol } of Object.values(OPERATORS)) {
      for (const example of OPERATOR_NOTES[symbol].examples) {
        expect(example).toContain(symbol === WITHIN ? `${symbol}(` : ` ${symbol} `);
        expect(compilePolicy(example, at).text).toBe(example);
      }
    }
  });
});
