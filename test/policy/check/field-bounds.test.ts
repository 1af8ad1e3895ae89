/** Warnings of comparisons that the `min` and `max` of their field decide, and none where they do not. */
import { describe, expect, it, test } from 'vitest';
import { COMPARE_OPS } from '../../../grammar/tokens.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import { OPERATORS } from '../../../src/policy/operators.ts';
import type { Catalog, CatalogField } from '../../../src/policy/types.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { Random } from '../../fuzz/random.ts';
import { SAMPLE } from '../sample-catalog.ts';

const schemaWith = (policy: string): string => `
collections:
  games:
    fields:
      score: { type: int, required: true, min: 0, max: 100 }
      rating: { type: float, min: -1.5, max: 5 }
      level: { type: int, required: true, min: 3 }
      code: { type: string, required: true, min: 2, max: 4 }
      starts: { type: datetime, required: true, min: "2020-01-01T00:00:00Z", max: "2030-01-01T00:00:00Z" }
      free: { type: int, required: true }
      state: { type: string, required: true, enum: [open, closed] }
    relations: { players: { kind: many_to_many, collection: users } }
    access: { read: ${JSON.stringify(policy)} }
`;
const issuesOf = (policy: string): readonly string[] => {
  const { issues } = parseSchema(schemaWith(policy), 'bylaw.yaml');
  return issues.map(({ code, message }) => `${code}: ${message}`);
};
/** Stored values stay when a schema narrows a bound. */
const OLD = 'only a record that was stored under other bounds can make this';
const NOTHING_ELSE =
  'never_allows: only a record that was stored under other bounds or enums can make this true, so the rule allows nothing else; ' +
  'write `false` to deny on purpose';
const score = '`score` is from 0 to 100';
const never = (fact: string): readonly string[] => [`never_true: ${fact}, so ${OLD} true`];
const always = (fact: string): readonly string[] => [`always_true: ${fact}, so ${OLD} false`];

describe('decisions by field bounds', () => {
  it.each([
    ['@record.score > 100', never(score)],
    ['100 < @record.score', never(score)],
    ['@record.score >= 101', never(score)],
    ['@record.score < 0', never(score)],
    ['@record.score = -1', never(score)],
    ['@record.score in [-1, 101, 200]', never(score)],
    ['@record.score <= 100', always(score)],
    ['@record.score >= 0', always(score)],
    ['@record.score != 101', always(score)],
    ['@record.score not in [-1, 101]', always(score)],
    ['@record.level < 3', never('`level` is at least 3')],
    ['@record.level >= 3', always('`level` is at least 3')],
    ['@record.rating > 5.5', never('`rating` is from -1.5 to 5')],
    ['@record.rating < -2', never('`rating` is from -1.5 to 5')],
    ['@record.code = "a"', never('`code` has from 2 to 4 characters')],
    ['@record.code starts with "abcde"', never('`code` has from 2 to 4 characters')],
    ['@record.code contains "abcde"', never('`code` has from 2 to 4 characters')],
    ['@record.code in ["", "abcde"]', never('`code` has from 2 to 4 characters')],
    ['@record.code != "abcde"', always('`code` has from 2 to 4 characters')],
    [
      '@record.starts < "2019-12-31T23:59:59Z"',
      never('`starts` is from 2020-01-01T00:00:00.000000Z to 2030-01-01T00:00:00.000000Z'),
    ],
  ])('%s', (policy, expected) => {
    expect(issuesOf(policy)).toEqual(expected);
  });
});

describe('a rule that only old records can meet', () => {
  it.each([
    ['@record.score > 100 and @record.level = 4', [...never(score), NOTHING_ELSE]],
    ['@record.free > 1 and not (@record.score <= 100)', [NOTHING_ELSE, ...always(score)]],
    [
      '@record.score > 100 and false',
      [
        ...never(score),
        'never_allows: this is never true for any record and request, so the rule allows nothing; write `false` to deny on purpose',
        'never_true: this is always false',
      ],
    ],
  ])('%s', (policy, expected) => {
    expect(issuesOf(policy)).toEqual(expected);
  });
});

test('a value outside the enum can be stored under another enum', () => {
  const unknown =
    'enum_unknown: `state` is an enum without `archived`, so only a record that was stored under another enum can equal it; ' +
    'expected `open`, `closed`';
  expect(issuesOf('@record.state = "archived"')).toEqual([unknown]);
  const conditions = `conditions: { 'archived(state: string)': 'state = "archived"' }`;
  const { issues } = parseSchema(
    `${conditions}${schemaWith('archived(@record.state) and @record.free > 0')}`,
    'bylaw.yaml',
  );
  expect(issues.map(({ code, message }) => `${code}: ${message}`)).toEqual([NOTHING_ELSE]);
});

describe('comparisons that field bounds leave open', () => {
  it.each([
    '@record.score > 99',
    '@record.score >= 100',
    '@record.score < 1',
    '@record.score <= 0',
    '@record.score = 100',
    '@record.score in [-1, 0]',
    '@record.score != 0',
    '@record.level > 1000000',
    '@record.level = 3',
    // Not where it is null.
    '@record.rating <= 5',
    '@record.rating > 4.999',
    '@record.code = "ab"',
    // Four characters of two units each.
    '@record.code = "😀😀😀😀"',
    '@record.code starts with "abcd"',
    '@record.code < "a"',
    '@record.code > "zzzzzzzz"',
    '@record.starts >= "2030-01-01T00:00:00Z"',
    '@record.starts = "2020-01-01T01:00:00+01:00"',
    '@record.free > 100',
    '@record.score > @record.free',
    'count(@record.players) > 100',
  ])('%s', (policy) => {
    expect(issuesOf(policy)).toEqual([]);
  });
});

test('the checker warns if and only if every value of the field agrees', () => {
  const random = new Random(20261122);
  const found = { never: 0, always: 0, neither: 0 };
  for (let i = 0; i < 3000; i++) {
    const min = random.chance(0.8) ? random.below(5) : undefined;
    const max = random.chance(0.8) ? (min ?? 0) + random.below(4) : undefined;
    // Beyond a bound that is not given there are others, one of which is far away.
    const values = Array.from({ length: 40 }, (_, n) => n - 20)
      .concat(-1e6, 1e6)
      .filter((value) => value >= (min ?? -Infinity) && value <= (max ?? Infinity));
    const op = random.pick(
      COMPARE_OPS.filter((each) => ['equality', 'order', 'list'].includes(OPERATORS[each].family)),
    );
    const literal = () => random.below(12) - 2;
    const right = OPERATORS[op].family === 'list' ? Array.from({ length: 1 + random.below(3) }, literal) : literal();
    const policy = `@record.score ${op} ${JSON.stringify(right)}`;
    const outcomes = values.map((value) => OPERATORS[op].holds(value, right));
    const wanted = outcomes.every(Boolean) ? 'always' : outcomes.some(Boolean) ? 'neither' : 'never';
    const { issues } = examine(policy, { catalog: withScore({ min, max }), collection: 'documents', action: 'read' });
    const given =
      issues.map(({ code }) => ({ always_true: 'always', never_true: 'never' })[code] ?? code)[0] ?? 'neither';
    // A list that names every value of a narrow range is not looked through.
    if (OPERATORS[op].family === 'list' && given === 'neither') continue;
    expect(given, `${policy} with ${min} to ${max}`).toBe(wanted);
    found[wanted]++;
  }
  expect(Math.min(...Object.values(found))).toBeGreaterThan(100);
});

function withScore({ min, max }: { readonly min: number | undefined; readonly max: number | undefined }): Catalog {
  const documents = SAMPLE.collections.get('documents')!;
  const bounds = { ...(min !== undefined && { min }), ...(max !== undefined && { max }) };
  const field: CatalogField = { ...documents.fields.get('score')!, required: true, ...bounds };
  const fields = new Map(documents.fields).set('score', field);
  return { ...SAMPLE, collections: new Map(SAMPLE.collections).set('documents', { ...documents, fields }) };
}
