import { describe, expect, it } from 'vitest';
import { keyOfCondition } from '../../../src/policy/lower/simplify.ts';
import { compareNumerals, holdsForNumerals, numberTest } from '../../../src/policy/scalars/numerals.ts';
import type { PolicyRequest } from '../../../src/policy/types.ts';
import { conditionOf } from '../sample-catalog.ts';

const REQUEST: PolicyRequest = {
  auth: { id: '11111111-1111-4111-8111-111111111111', roles: [] },
  query: {},
  now: '2026-01-01T00:00:00.000000Z',
};
const condOf = (text: string, request = REQUEST) => conditionOf(text, request);

/** The two lower to the same condition. */
const SAME: readonly (readonly [string, string])[] = [
  ['not (@record.score < 5)', '@record.score >= 5'],
  ['not (@record.score >= 5)', '@record.score < 5'],
  ['not (@record.score = 5)', '@record.score != 5'],
  ['not (@record.status in ["a", "b"])', '@record.status not in ["a", "b"]'],
  ['not not @record.pinned', '@record.pinned'],
  ['not (@record.pinned and @record.score = 1)', 'not @record.pinned or @record.score != 1'],
  ['not (@record.pinned or @record.score = 1)', 'not @record.pinned and @record.score != 1'],
  ['not (@record.score is null)', '@record.score is not null'],
  ['5 > @record.score', '@record.score < 5'],
  ['none(@record.tags as t, t.label = "x")', 'not any(@record.tags as u, u.label = "x")'],
  ['not all(@record.tags as t, t.label = "x")', 'any(@record.tags as u, u.label != "x")'],
  ['any(@record.tags as t, t.label = "x" and t.label = "x")', 'any(@record.tags as t, t.label = "x")'],
  // simplification
  ['@record.pinned or true', 'true'],
  ['@record.pinned and true', '@record.pinned'],
  ['@record.pinned and (@record.pinned or @record.score = 1)', '@record.pinned'],
  ['@record.pinned or (@record.pinned and @record.score = 1)', '@record.pinned'],
  ['@record.status = "a" or @record.status = "b"', '@record.status in ["a", "b"]'],
  ['@record.status in ["a", "b"] and @record.status in ["b", "c"]', '@record.status = "b"'],
  ['@record.status = "a" and @record.status = "b"', 'false'],
  ['@record.score != 1 or @record.score != 2', '@record.score is not null'],
  ['@record.score > 1 and @record.score > 3', '@record.score > 3'],
  ['@record.score > 1 or @record.score > 3', '@record.score > 1'],
  ['@record.score > 3 and @record.score >= 3', '@record.score > 3'],
  ['@record.score > 3 or @record.score >= 3', '@record.score >= 3'],
  ['@record.score > 3 and @record.score <= 3', 'false'],
  ['@record.score < 2 and @record.score > 3', 'false'],
  ['@record.score = 1 and @record.score is not null', '@record.score = 1'],
  ['@record.score = 1 and @record.score is null', 'false'],
  ['@record.score = 1 or @record.score is not null', '@record.score is not null'],
  ['@record.score is null or @record.score is not null', 'true'],
  ['@record.pinned or not @record.pinned', 'true'],
  ['@record.score = 1 or @record.score != 1', '@record.score is not null'],
  ['@record.team.id is null', '@record.team is null'],
  ['@record.team.name is not null', '@record.team is not null'],
  // numbers are never rounded
  ['@record.score >= 1.5', '@record.score >= 2'],
  ['@record.score > -1.5', '@record.score >= -1'],
  ['@record.score <= 1.5', '@record.score <= 1'],
  ['@record.score = 1.0', '@record.score = 1'],
  ['@record.score = 1.5', 'false'],
  ['@record.score != 1.5', '@record.score is not null'],
  ['@record.score < 1e300', '@record.score is not null'],
  ['@record.score in [1.5, 2]', '@record.score = 2'],
  ['@record.score not in [1.5]', '@record.score is not null'],
];

describe('lowering', () => {
  it.each(SAME)('%s  is  %s', (one, other) => {
    expect(keyOfCondition(condOf(one))).toBe(keyOfCondition(condOf(other)));
  });

  /** Nothing may be merged where a third value would be lost, or where rows differ. */
  const DIFFERENT: readonly (readonly [string, string])[] = [
    ['@record.score = 1 or @record.score != 1', 'true'],
    ['@record.score < 5 or @record.score > 5', '@record.score is not null'],
    [
      'any(@record.tags as t, t.label = "x") and any(@record.tags as t, t.label = "y")',
      'any(@record.tags as t, t.label = "x" and t.label = "y")',
    ],
    ['@record.title = "a" or @record.status = "b"', '@record.title in ["a", "b"]'],
    ['not any(@record.team.memberships as m, m.note = "x")', 'none(@record.tags as t, t.label = "x")'],
  ];
  it.each(DIFFERENT)('%s  is not  %s', (one, other) => {
    expect(keyOfCondition(condOf(one))).not.toBe(keyOfCondition(condOf(other)));
  });

  it('lowering reads one row of a to-one relation once', () => {
    const both = condOf('@record.team.name = "x" and @record.team.lead = @request.auth.id');
    expect(both.kind === 'exists' && both.condition.kind === 'and' && both.condition.items.length).toBe(2);
  });

  it('lowering tests absence behind a quantifier only for a nullable column', () => {
    const nullable = keyOfCondition(condOf('all(@record.team.memberships as m, m.note = "x")'));
    const required = keyOfCondition(condOf('all(@record.team.memberships as m, m.role = "x")'));
    expect([nullable.includes('null(^0.note)'), required.includes('null(^0')]).toEqual([true, false]);
  });
});

const TWO_53 = '9007199254740993';
const HUGE = '1e400';

describe('numerals', () => {
  it('a comparison with a numeral that no double holds is exact', () => {
    const read = (column: 'int' | 'float', source: string) =>
      (['=', '!=', '<', '<=', '>', '>='] as const).map((op) =>
        numberTest(column, op, { value: Number(source), exact: source }),
      );
    expect(read('float', TWO_53)).toEqual([
      false,
      true,
      { op: '<=', value: 9007199254740992 },
      { op: '<=', value: 9007199254740992 },
      { op: '>', value: 9007199254740992 },
      { op: '>', value: 9007199254740992 },
    ]);
    expect(read('float', HUGE)).toEqual([false, true, true, true, false, false]);
    expect(read('int', `-${HUGE}`)).toEqual([false, true, false, false, true, true]);
    expect(read('int', '1.00000000000000000001').slice(2)).toEqual([
      { op: '<=', value: 1 },
      { op: '<=', value: 1 },
      { op: '>', value: 1 },
      { op: '>', value: 1 },
    ]);
    expect(read('int', '-1e-400').slice(4)).toEqual([
      { op: '>', value: -1 },
      { op: '>', value: -1 },
    ]);
    expect(read('float', '0.99999999999999999999').slice(2, 4)).toEqual([
      { op: '<', value: 1 },
      { op: '<', value: 1 },
    ]);
  });

  it('two numerals compare as written', () => {
    const ascending = [
      '-1e999999999',
      '-2',
      '-1.5',
      '-1e-9',
      '0',
      '1e-999999999',
      '0.1',
      '0.10000000000000000001',
      '1',
      '9007199254740992',
      TWO_53,
      '1e400',
      '1e999999999',
    ];
    const signs = ascending.map((left, i) =>
      ascending.map((right, j) => Math.sign(compareNumerals(left, right)) === Math.sign(i - j)),
    );
    expect(signs.flat().every(Boolean)).toBe(true);
    expect([compareNumerals('1e2', '100.0'), compareNumerals('-0', '0'), compareNumerals('1.50', '1.5')]).toEqual([
      0, 0, 0,
    ]);
    expect([holdsForNumerals('=', '1e2', '100'), holdsForNumerals('<', TWO_53, '9007199254740992')]).toEqual([
      true,
      false,
    ]);
  });
});
