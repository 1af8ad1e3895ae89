import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { subsumes } from '../../../src/policy/analyse/subsumes.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import { CAN_BE_FALSE, CAN_BE_TRUE, CAN_BE_UNKNOWN, canBe, outcomes } from '../../../src/policy/check/outcomes.ts';
import type { Checked, Related, Row } from '../../../src/policy/types.ts';
import { interpret } from '../../oracle/interpret.ts';
import { processorTimeOf } from '../../support/processor-time.ts';
import { SAMPLE } from '../sample-catalog.ts';

function checkedOf(text: string): Checked {
  const { checked, issues } = examine(text, { catalog: SAMPLE, collection: 'documents', action: 'update' });
  expect(checked, JSON.stringify(issues)).toBeDefined();
  return checked!;
}

describe('a rule that another one makes idle', () => {
  it.each<[wide: string, narrow: string]>([
    ['true', '@record.pinned'],
    ['@record.pinned', 'false'],
    ['@record.pinned', '@record.pinned and @record.score > 5'],
    ['@record.pinned or @record.score > 5', '@record.score > 5'],
    ['@record.status in ["draft", "published"]', '@record.status = "draft"'],
    ['@record.status != "draft"', '@record.status = "published"'],
    ['@record.score >= 5', '@record.score > 5'],
    ['@record.score >= 5', '@record.score = 7'],
    ['@record.score is not null', '@record.score < 3'],
    // Strings are ordered by code point.
    ['@record.title > "Z"', '@record.title > "a"'],
    ['@record.created_at > @now - 2h', '@record.created_at > @now - 1h'],
    ['@record.pinned != true or @record.score > 5', '@record.pinned = false'],
    ['any(@record.tags as t, t.label != "a")', 'any(@record.tags as u, u.label = "b" and @record.pinned)'],
    ['@record.owner = @request.auth.id or @next.pinned', '@record.owner = @request.auth.id and @next.pinned'],
  ])('%s takes all of %s', (wide, narrow) => {
    expect(subsumes(checkedOf(wide), checkedOf(narrow))).toBe(true);
    expect(subsumes(checkedOf(narrow), checkedOf(wide))).toBe(false);
  });

  it.each<[a: string, b: string]>([
    ['@record.score is not null', '@record.score not in []'],
    ['none(@record.tags as t, t.label != "b")', 'none(@record.tags as t, t.label = "a")'],
    ['@record.score != 1', '@record.score not in []'],
    ['@record.score > 5', '@record.score >= 5'],
    ['@record.score < 5', '@record.score > 5'],
    ['any(@record.tags as t, t.label = "a")', 'all(@record.tags as t, t.label = "a")'],
    ['@record.title > "a"', '@record.title > "Z"'],
    ['@record.due_at > @now', '@record.due_at > "2026-01-01T00:00:00Z"'],
    ['@record.created_at > @now - 1h', '@record.created_at > @now - 2h'],
  ])('%s does not take all of %s', (a, b) => {
    expect(subsumes(checkedOf(a), checkedOf(b))).toBe(false);
  });

  it('a rule without `@next` does not subsume one with it, since it must hold for both records', () => {
    expect(subsumes(checkedOf('@record.pinned'), checkedOf('@record.pinned and @next.score > 5'))).toBe(false);
    expect(subsumes(checkedOf('@record.pinned or @next.score > 5'), checkedOf('@record.pinned'))).toBe(true);
  });

  it('the proof gives up in time', () => {
    const nest = (n: number): string =>
      n === 0
        ? '@record.pinned'
        : `(${nest(n - 1)} or @record.score > ${n}) and (@record.score < ${n} or @record.rating > ${n})`;
    expect(processorTimeOf(() => subsumes(checkedOf(nest(20)), checkedOf(nest(19))))).toBeLessThan(1000);
  });
});

const LEAVES = [
  'true',
  'false',
  '@record.pinned',
  '@record.score = 1',
  '@record.score = 2',
  '@record.score != 1',
  '@record.score > 1',
  '@record.score >= 1',
  '@record.score < 2',
  '@record.score <= 1.5',
  '@record.score in [1, 2]',
  '@record.score in []',
  '@record.score not in []',
  '@record.score not in [1]',
  '@record.score not in [1, 2]',
  '@record.score is null',
  '@record.score is not null',
  '@record.score = @record.score',
  '@record.status = "draft"',
  '@record.status != "draft"',
  '@record.status = "nope"',
  '@request.query.n = "x"',
  '@request.query.n is null',
  '1 < 2',
  'any(@record.tags as t, t.label = "a")',
  'any(@record.tags as t, t.label != "a")',
  'all(@record.tags as t, t.label = "a")',
  'none(@record.tags as t, t.label = "a" or @record.score = 1)',
  'any(@record.tags as t, true)',
  'any(@record.tags as t, false)',
  'any(@record.team.memberships as m, true)',
  'none(@record.team.memberships as m, false)',
  'all(@record.team.memberships as m, true)',
]; // prettier-ignore

const policies = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom(...LEAVES),
    fc.tuple(tie('text'), fc.constantFrom('and', 'or'), tie('text')).map(([a, op, b]) => `(${a}) ${op} (${b})`),
    tie('text').map((text) => `not (${text})`),
  ),
})).text;

interface Case {
  readonly record: Row;
  readonly labels: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}
const ID = '0190a6c0-0000-7000-8000-00000000000f';
const CASES: readonly Case[] = [null, 0, 1, 2, 3].flatMap((score) =>
  [true, false].flatMap((pinned) =>
    [[], ['a'], ['a', 'b']].flatMap((labels) =>
      [{}, { n: 'x' }, { n: 'y' }].map((query) => ({
        record: { id: ID, score, pinned, status: pinned ? 'draft' : 'published' },
        labels,
        query: query as Readonly<Record<string, string>>,
      })),
    ),
  ),
);

function truth(checked: Checked, { record, labels, query }: Case) {
  const tags = labels.map((label, i) => ({ id: `0190a6c0-0000-7000-8000-00000000001${i}`, label }));
  const related: Related = { one: () => undefined, many: () => tags };
  const request = { auth: { id: ID }, query, now: '2026-01-01T00:00:00.000000Z' };
  return interpret(checked, { record, related, request });
}

describe('against the plain interpreter', () => {
  it('the proof never reports a needed rule as redundant', { tags: ['long'] }, () => {
    let shown = 0;
    fc.assert(
      fc.property(policies, policies, (one, other) => {
        const [a, b] = [checkedOf(one), checkedOf(`(${one}) and (${other})`)];
        const c = checkedOf(other);
        for (const [wide, narrow] of [
          [a, b],
          [a, c],
          [c, b],
          [b, c],
        ] as const) {
          if (!subsumes(wide, narrow)) continue;
          shown++;
          for (const each of CASES) if (truth(narrow, each) === true) expect(truth(wide, each)).toBe(true);
        }
      }),
      { seed: 11, numRuns: 400 },
    );
    expect(shown).toBeGreaterThan(400);
  });

  it('the outcomes include every result of the interpreter', { tags: ['long'] }, () => {
    fc.assert(
      fc.property(policies, (text) => {
        const checked = checkedOf(text);
        const set = outcomes(checked);
        for (const each of CASES) {
          const found = truth(checked, each);
          expect(canBe(set, found === undefined ? CAN_BE_UNKNOWN : found ? CAN_BE_TRUE : CAN_BE_FALSE)).toBe(true);
        }
      }),
      { seed: 12, numRuns: 600 },
    );
  });
});
