import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide } from '../../../src/policy/access.ts';
import { canonical } from '../../../src/policy/analyse/canonical.ts';
import { type Pin, provenPins, sharedPins } from '../../../src/policy/analyse/routing.ts';
import { compilePolicy } from '../../../src/policy/compile.ts';
import type { Action, Policy, PolicyRequest, Related, Row } from '../../../src/policy/types.ts';
import { interpret } from '../../oracle/interpret.ts';
import { SAMPLE } from '../sample-catalog.ts';

const [ME, YOU, TEAM] = ['1', '2', '3'].map((digit) => `0190a6c0-0000-7000-8000-00000000000${digit}`) as [
  string,
  string,
  string,
];
const NOW = '2026-01-01T00:00:00.000000Z';

const ruleOf = (text: string, action: Action = 'update'): Policy =>
  compilePolicy(text, { catalog: SAMPLE, collection: 'documents', action });
const provenOf = (text: string): readonly Pin[] => provenPins(ruleOf(text).checked, 'owner');
const named = (pin: Pin): unknown => (pin.kind === 'literal' ? pin.value : `${pin.source}.${pin.name}`);
const requestOf = (query: PolicyRequest['query'] = {}, home: string | null = TEAM): PolicyRequest => ({
  auth: { id: ME, home, roles: [] },
  query,
  now: NOW,
});

describe('the owner that a rule requires', () => {
  it.each<[text: string, ...pins: string[]]>([
    ['@record.owner = @request.auth.id', 'auth.id'],
    ['@request.auth.id = @record.owner', 'auth.id'],
    ['@record.owner.id = @request.auth.id', 'auth.id'],
    ['@record.owner = @request.query.owner', 'query.owner'],
    [`@record.owner = "${ME}"`, ME],
    [`"${ME}" = @record.owner`, ME],
    ['@record.score = 1 and @record.owner = @request.auth.id', 'auth.id'],
    ['not (@record.owner != @request.auth.id)', 'auth.id'],
    ['not (@request.auth.id != @record.owner or @record.score = 1)', 'auth.id'],
    ['not not (@record.owner = @request.auth.id)', 'auth.id'],
    [
      '(@record.owner = @request.auth.id and @record.score = 1) or (@record.pinned and @request.auth.id = @record.owner)',
      'auth.id',
    ],
    ['@record.owner = @request.auth.id and (@record.score = 1 or @next.score = 1)', 'auth.id'],
    ['@record.owner = @request.auth.id and @next.owner = @record.owner', 'auth.id'],
    ['@record.owner = @request.auth.id and @record.owner = @request.query.owner', 'auth.id', 'query.owner'],
    ['any(@record.tags as t, t.label = "a") and @record.owner = @request.auth.id', 'auth.id'],
  ])('the required owner of %s is %s', (text, ...pins) => {
    expect(provenOf(text).map(named)).toEqual(pins);
    const rules = [ruleOf(text)];
    const permit = decide({ rules, request: requestOf({ owner: ME }) });
    expect(permit.pinned('owner_id')).toBe(ME);
  });

  it.each([
    'true',
    '@record.score = 1',
    '@record.owner != @request.auth.id',
    'not (@record.owner = @request.auth.id)',
    '@record.owner = @request.auth.id or @record.score = 1',
    '@record.owner = @request.auth.id or @record.owner = @request.query.owner',
    'not (@record.owner != @request.auth.id and @record.score = 1)',
    '@next.owner = @request.auth.id',
    '@record.owner = @next.owner',
    '@record.owner = @request.auth.id or @next.owner = @request.auth.id',
    '@record.owner in @request.query.owners',
    `@record.owner in ["${ME}", "${YOU}"]`,
    '@record.owner = @request.auth.email',
    '@record.owner is not null',
    '@record.team.lead = @request.auth.id',
    '@request.auth.roles contains "admin"',
    'any(@record.team.memberships as m, m.user = @request.auth.id)',
  ])('no owner is required by %s', (text) => {
    expect(provenOf(text)).toEqual([]);
    const request = requestOf({ owner: YOU, owners: [ME, YOU] });
    expect(decide({ rules: [ruleOf(text)], request }).pinned('owner_id')).toBeUndefined();
  });

  it('rules of one action share the owner that all of them require', () => {
    const pins = ['auth.id', 'query.owner', 'both'].map((which) =>
      provenOf(
        { 'auth.id': MINE, 'query.owner': ASKED, both: `@record.pinned and ${ASKED} and ${MINE}` }[which] as string,
      ),
    );
    const shared = (...of: readonly number[]) => sharedPins(of.map((i) => pins[i]!)).map(named);
    expect([shared(0, 2), shared(1, 2), shared(0, 1), shared(0, 1, 2), shared(2)]).toEqual([
      ['auth.id'],
      ['query.owner'],
      [],
      [],
      ['query.owner', 'auth.id'],
    ]);
  });

  it('rules compare required owners by value', () => {
    const rules = [ruleOf(MINE), ruleOf(`${ASKED} and @record.pinned`)];
    const pinnedFor = (owner: string) => decide({ rules, request: requestOf({ owner }) }).pinned('owner_id');
    expect([pinnedFor(ME), pinnedFor(YOU)]).toEqual([ME, undefined]);
  });

  it('the permit requires the owner of its open rules', () => {
    const rules = [ruleOf(MINE), ruleOf('@record.pinned and @request.auth.roles contains "admin"')];
    expect(decide({ rules, request: requestOf() }).pinned('owner_id')).toBe(ME);
    expect(decide({ rules: [ruleOf(ASKED)], request: requestOf() }).pinned('owner_id')).toBeUndefined();
  });

  it('a create requires the owner of the created record', () => {
    const rules = [ruleOf(`${MINE} and @record.pinned`, 'create')];
    expect(decide({ rules, request: requestOf() }).pinned('owner_id')).toBe(ME);
  });
});

const MINE = '@record.owner = @request.auth.id';
const ASKED = '@record.owner = @request.query.owner';

const LEAVES = [
  MINE,
  '@request.auth.id = @record.owner',
  '@record.owner.id = @request.auth.id',
  ASKED,
  `@record.owner = "${YOU}"`,
  `@record.owner in ["${YOU}"]`,
  `@record.owner in ["${ME}", "${YOU}"]`,
  '@record.owner in @request.query.owners',
  '@record.owner != @request.auth.id',
  '@next.owner = @request.auth.id',
  '@record.owner = @next.owner',
  '@next.owner != @request.query.owner',
  '@record.team = @request.auth.home',
  '@record.team != @request.auth.home',
  '@record.team.id is null',
  '@record.score = 1',
  '@record.score >= @next.score',
  '@next.score < @record.score',
  '@record.score not in [1]',
  '@request.query.n = "x"',
  'changed(@record.score, @record.owner)',
  'count(@record.tags as t, t.label = "a") < 1',
  '@record.pinned',
  'true',
  'false',
] as const;

const policies = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(...LEAVES),
    fc.tuple(tie('text'), fc.constantFrom('and', 'and', 'or'), tie('text')).map(([a, op, b]) => `(${a}) ${op} (${b})`),
    tie('text').map((text) => `not (${text})`),
  ),
})).text;

const REQUESTS: readonly PolicyRequest[] = [
  requestOf(),
  requestOf({ owner: ME, n: 'x' }, null),
  requestOf({ owner: YOU, owners: [YOU] }),
  requestOf({ owner: 'nobody', owners: [ME, YOU] }),
];
/** A foreign key leads to a record. */
const RELATED: Related = { one: (_, id) => ({ id }), many: () => [] };
const ROWS: readonly Row[] = [ME, YOU].flatMap((owner) =>
  [null, TEAM].flatMap((team) =>
    [null, 1, 2].map((score) => ({ id: TEAM, owner, team, score, pinned: score === 1, tags: [] })),
  ),
);

describe('against the plain interpreter', () => {
  it('every allowed record has the required owner', { tags: ['long'] }, () => {
    let [proven, pinned] = [0, 0];
    fc.assert(
      fc.property(fc.array(policies, { minLength: 1, maxLength: 3 }), (texts) => {
        const rules = texts.map((text) => ruleOf(text));
        const isProven = sharedPins(rules.map(({ checked }) => provenPins(checked, 'owner'))).length > 0;
        for (const request of REQUESTS) {
          const permit = decide({ rules, request });
          const owner = permit.pinned('owner_id');
          if (isProven) expect(permit.verdict === 'deny' || owner !== undefined).toBe(true);
          if (isProven) proven++;
          if (owner === undefined) continue;
          pinned++;
          for (const record of ROWS)
            for (const next of ROWS) {
              const isAllowed = rules.some(
                ({ checked }) => interpret(checked, { record, next, request, related: RELATED }) === true,
              );
              if (isAllowed) expect(record.owner).toBe(owner);
            }
        }
      }),
      { seed: 16, numRuns: 1500 },
    );
    expect(proven).toBeGreaterThan(100);
    expect(pinned).toBeGreaterThan(300);
  });

  it('the canonical spelling keeps the meaning', { tags: ['long'] }, () => {
    fc.assert(
      fc.property(policies, (text) => {
        const { checked } = ruleOf(text);
        const spelt = canonical(checked);
        for (const request of REQUESTS)
          for (const record of ROWS)
            for (const next of ROWS.slice(4, 8)) {
              const world = { record, next, request, related: RELATED };
              expect(interpret(spelt, world)).toBe(interpret(checked, world));
            }
      }),
      { seed: 17, numRuns: 400 },
    );
  });
});
