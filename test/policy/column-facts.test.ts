/** Facts about a record reduce a policy without changing its decisions. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/policy/access.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import { compileFilter } from '../../src/policy/filters/filter.ts';
import { NO_RELATED, type Row } from '../../src/policy/types.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const ME = '11111111-1111-4111-8111-111111111111';
const OTHER = '22222222-2222-4222-8222-222222222222';
const NOW = '2026-01-01T00:00:00.000000Z';
const REQUEST = { auth: { id: ME, roles: ['member'], department: 'sales' }, query: { n: '5', f: '5.0' }, now: NOW };
const MEMBER = 'any(@record.team.memberships as m, m.user = @request.auth.id)';
const MEMBERS =
  'EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."team_id" = "d"."team_id" AND "d_1"."user_id" = $1::uuid)';
const TEAM = OTHER;
const ROWS_OF_TEAM = '"memberships" AS "d_1" WHERE "d_1"."team_id" = $1::uuid';
const USERS_OF_TEAM = '"d_2"."user_id" FROM "memberships" AS "d_2" WHERE "d_2"."team_id" = $2::uuid';
const OF_TEAM = `EXISTS (SELECT 1 FROM ${ROWS_OF_TEAM} AND "d_1"."user_id" = $2::uuid)`;

const place = { catalog, collection: 'documents', action: 'list' } as const;
const leftOf = (policy: string, facts: Row) => compilePolicy(policy, place).specialise(REQUEST).given(facts);

/** A policy, what is known, and what is left: a verdict, or a condition over documents as `d`. */
const LEFT: readonly (readonly [policy: string, facts: Row, left: string])[] = [
  ['@record.status = "published"', { status: 'published' }, 'allow'],
  ['@record.status = "published"', { status: 'draft' }, 'deny'],
  ['@record.status = "published"', { status: 'Published' }, 'deny'],
  ['@record.status = "published"', {}, `"d"."status" = 'published'::text`],
  ['@record.status = "published"', { title: 'published' }, `"d"."status" = 'published'::text`],
  ['@record.status != "published"', { status: 'draft' }, 'allow'],
  ['@record.status in ["draft", "review"]', { status: 'review' }, 'allow'],
  ['@record.status not in ["draft", "review"]', { status: 'review' }, 'deny'],
  [
    '@record.status = "published" or @record.owner = @request.auth.id',
    { status: 'draft' },
    '"d"."owner_id" = $1::uuid',
  ],
  [
    '@record.status = "published" or @record.owner = @request.auth.id',
    { owner: OTHER },
    `"d"."status" = 'published'::text`,
  ],
  ['@record.status = "published" or @record.owner = @request.auth.id', { owner: ME }, 'allow'],
  ['@record.status = "published" or @record.owner = @request.auth.id', { owner: OTHER, status: 'draft' }, 'deny'],
  ['@record.status = "draft" and @record.owner = @request.auth.id', { status: 'draft' }, '"d"."owner_id" = $1::uuid'],
  ['@record.status = "draft" and @record.owner = @request.auth.id', { status: 'published' }, 'deny'],
  ['not (@record.status = "draft")', { status: 'draft' }, 'deny'],
  ['not (@record.owner = @request.auth.id)', { owner: null }, 'deny'],
  ['@record.owner = @request.auth.id', { owner: null }, 'deny'],
  ['@record.team is null', { team: null }, 'allow'],
  ['@record.team is null', { team: ME }, 'deny'],
  ['@record.team is not null', { team: ME }, 'allow'],
  ['@record.score = 5', { score: 5 }, 'allow'],
  ['@record.score = 5.0', { score: 5 }, 'allow'],
  ['@record.score >= 4.5', { score: 4 }, 'deny'],
  ['@record.score = @request.query.n', { score: 5 }, 'allow'],
  ['@record.score = @request.query.n', { score: 6 }, 'deny'],
  ['@record.rating = 1', { rating: 1.0 }, 'allow'],
  ['@record.rating < @record.score', { rating: 1.5, score: 2 }, 'allow'],
  ['@record.rating < @record.score', { rating: 1.5 }, '"d"."rating" < "d"."score"'],
  ['@record.pinned', { pinned: true }, 'allow'],
  ['not @record.pinned', { pinned: true }, 'deny'],
  ['@record.pinned != true', { pinned: false }, 'allow'],
  ['@record.due_at < @now', { due_at: '2025-12-31T23:59:59.999999Z' }, 'allow'],
  ['@record.due_at < @now - 1h', { due_at: '2025-12-31T23:59:59.999999Z' }, 'deny'],
  ['@record.title starts with "ab"', { title: 'abc' }, 'allow'],
  ['@record.title contains "B"', { title: 'abc' }, 'deny'],
  ['@record.title < "b"', { title: '\u{10000}' }, 'deny'],
  // Facts are about the record itself, not about other records that a walk meets.
  [`${MEMBER} or @record.status = "published"`, { status: 'draft' }, MEMBERS],
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id and @record.status = "draft")',
    { status: 'draft' },
    MEMBERS,
  ],
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id and @record.status = "draft")',
    { status: 'x' },
    'deny',
  ],
  ['none(@record.team.memberships as m, @record.status = "draft")', { status: 'x' }, '"d"."team_id" IS NOT NULL'],
  // The related rows of a known column are those of every record.
  [MEMBER, { team: TEAM }, OF_TEAM],
  [MEMBER, { team: null }, 'deny'],
  [`not (${MEMBER})`, { team: TEAM }, `NOT ${OF_TEAM}`],
  [`${MEMBER} or @record.pinned`, { team: TEAM }, `("d"."pinned" OR ${OF_TEAM})`],
  [
    'count(@record.team.memberships as m, m.user != @request.auth.id) > 3',
    { team: TEAM },
    `(SELECT count(*) FROM (SELECT 1 FROM ${ROWS_OF_TEAM} AND "d_1"."user_id" <> $2::uuid LIMIT 4::int8) AS "counted") > 3::int8`,
  ],
  // Two related rows are compared, neither of them with the record.
  [
    'any(@record.team.memberships as m, any(@record.team.memberships as n, m.user = n.user))',
    { team: TEAM, user: ME },
    `EXISTS (SELECT 1 FROM ${ROWS_OF_TEAM} AND "d_1"."user_id" = ANY(ARRAY(SELECT ${USERS_OF_TEAM})))`,
  ],
  [
    'any(@request.auth.memberships as m, m.team = @record.team)',
    { team: TEAM },
    'EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."user_id" = $1::uuid AND "d_1"."team_id" = $2::uuid)',
  ],
];

describe('the remainder of a policy under known facts', () => {
  it.each(LEFT)('%s, knowing %j, is %s', (policy, facts, left) => {
    const residual = leftOf(policy, facts);
    expect(residual.verdict === 'depends' ? residual.where('d').text : residual.verdict).toBe(left);
  });

  it('a known remainder binds the values of the current request', () => {
    const policy = compilePolicy('@record.owner = @request.auth.id or @record.status = "published"', place);
    const valuesOf = (id: string) =>
      policy
        .specialise({ ...REQUEST, auth: { id } })
        .given({ status: 'draft' })
        .where('d').values;
    expect([valuesOf(ME), valuesOf(OTHER), valuesOf(ME)]).toEqual([[ME], [OTHER], [ME]]);
  });

  it('a remainder decides in memory too', () => {
    const residual = leftOf('@record.owner = @request.auth.id or @record.status = "published"', { status: 'draft' });
    const decisions = [ME, OTHER, null].map((owner) => residual.test({ owner, status: 'published' }, NO_RELATED));
    expect(decisions).toEqual([true, false, false]);
  });

  it('a remainder with the value of a link decides in memory by the rows of the record, after more facts too', () => {
    const left = leftOf(`${MEMBER} and @record.pinned`, { team: TEAM });
    const rows = [{ id: OTHER, team: TEAM, user: ME }];
    const related = { one: () => undefined, many: (_: string, __: string, id: string) => (id === TEAM ? rows : []) };
    for (const each of [left, left.given({ pinned: true })]) {
      const decisions = [TEAM, ME].map((team) => each.test({ team, pinned: true }, related));
      expect([decisions, each.needs.record.map(({ relation }) => relation)]).toEqual([[true, false], ['team']]);
    }
  });

  it('facts leave the condition on the written record alone', () => {
    const residual = compilePolicy('@record.status = "draft"', { ...place, action: 'update' }).specialise(REQUEST);
    const left = residual.given({ status: 'draft' });
    expect([left.verdict, residual.written.where('n').text]).toEqual(['allow', `"n"."status" = 'draft'::text`]);
  });

  it('facts drop the false rules of a union, and all others if one is true', () => {
    const texts = ['@record.status = "published"', '@record.owner = @request.auth.id', '@record.pinned'];
    const permit = decide({ rules: texts.map((text) => compilePolicy(text, place)), request: REQUEST });
    expect(permit.given({ status: 'draft' }).where('d').text).toBe('("d"."owner_id" = $1::uuid OR "d"."pinned")');
    expect(permit.given({ status: 'draft', pinned: false }).where('d').text).toBe('"d"."owner_id" = $1::uuid');
    expect(permit.given({ status: 'published' }).verdict).toBe('allow');
    expect(permit.given({ status: 'x', owner: OTHER, pinned: false }).verdict).toBe('deny');
  });

  it.each([
    [['@record.score > 3 and @record.pinned'], ['"d"."score" > 3::int8']],
    [['@record.score > @request.query.n and @record.score <= 9'], ['"d"."score" > $1::int8', '"d"."score" <= 9::int8']],
    [['@record.score > 3 or @record.pinned'], []],
    [['@record.score > 3', '@record.pinned'], []],
    [['@record.score = 3'], []],
    [['@record.rating > 3'], []],
  ])('the rules %j bound the scores of the records by %j', (texts, bounds) => {
    const permit = decide({ rules: texts.map((text) => compilePolicy(text, place)), request: REQUEST });
    expect(permit.bounds('score').map((each) => each.where('d').text)).toEqual(bounds);
  });

  it('a cached residual keeps few remainders', () => {
    const policy = compilePolicy('@record.score in [1, 2] or @record.status = "a" or @record.title = "b"', place);
    const residual = policy.specialise(REQUEST);
    const scores = Array.from(
      { length: 200 },
      (_, score) => residual.given({ score, title: `${score}` }).where('d').text,
    );
    expect(new Set(scores)).toEqual(new Set([`"d"."status" = 'a'::text`, 'TRUE']));
  });
});

/** A filter, its params, and what it says of every record that it finds. */
const FACTS: readonly (readonly [filter: string, params: Row, facts: Row])[] = [
  ['status = "draft"', {}, { status: 'draft' }],
  ['status = $s and score > 3', { s: 'draft' }, { status: 'draft' }],
  ['status = "draft" and owner = $me and pinned', { me: ME }, { status: 'draft', owner: ME, pinned: true }],
  ['not pinned', {}, { pinned: false }],
  ['team is null and title is not null', {}, { team: null }],
  ['score = $n', { n: 5.5 }, {}],
  ['score = $n', { n: 5 }, { score: 5 }],
  ['not (status != "draft")', {}, { status: 'draft' }],
  ['status = "draft" or status = "published"', {}, {}],
  ['status in ["draft", "published"]', {}, {}],
  ['status != "draft"', {}, {}],
  ['team.name = "a"', {}, {}],
  ['rating = score', {}, {}],
  ['(team = $t and score = 1) or (pinned and $t = team)', { t: OTHER }, { team: OTHER }],
  ['score > 3 and ((team is null and pinned) or (team is null and score = 4))', {}, { team: null }],
  ['(team = $t and pinned) or team = $u', { t: ME, u: OTHER }, {}],
  ['(team = $t and pinned) or score = 1', { t: ME }, {}],
];

describe('the facts of a filter', () => {
  const request = { auth: REQUEST.auth, now: NOW };
  const open = decide({ rules: [compilePolicy('true', place)], request: REQUEST });
  const partly = decide({ rules: [compilePolicy('@record.pinned', place)], request: REQUEST });
  const asked = (text: string, params: Row, masked?: string) =>
    compileFilter(text, { catalog, collection: 'documents', params }).filter!.asked(request, {
      records: () => open,
      member: (_, member) => (member === masked ? partly : undefined),
    });

  it.each(FACTS)('%s with %j: %j', (text, params, facts) => {
    expect(asked(text, params).facts).toEqual(facts);
  });

  it('a filter gives no fact on a member that is hidden in some records', () => {
    expect(asked('status = "draft" and score = 1', {}, 'status').facts).toEqual({ score: 1 });
    expect(asked('status is null', {}, 'status').facts).toEqual({});
  });
});
