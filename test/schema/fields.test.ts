import { describe, expect, it } from 'vitest';
import { type Constraints, FIELD_KINDS, keyKindOf } from '../../src/schema/fields/index.ts';

const read = (
  kind: (typeof FIELD_KINDS)[keyof typeof FIELD_KINDS],
  values: readonly unknown[],
  constraints: Constraints = {},
) =>
  values.map((value) => {
    const { value: taken, error } = kind.fromJson(value, constraints) as { value?: unknown; error?: { code: string } };
    return error === undefined ? taken : error.code;
  });

describe('the JSON values of fields', () => {
  it('string takes code points that PostgreSQL can store', () => {
    expect(read(FIELD_KINDS.string, ['', 'a', 5, null, true, [], 'a\0', '\ud800', '\ud83d\ude00'])).toEqual([
      '',
      'a',
      'wrong_type',
      'wrong_type',
      'wrong_type',
      'wrong_type',
      'unstorable',
      'unstorable',
      '\ud83d\ude00',
    ]);
    expect(
      read(FIELD_KINDS.string, ['', 'a', 'ab', '\ud83d\ude00\ud83d\ude00', 'abc', 'e\u0301'], { min: 1, max: 2 }),
    ).toEqual(['too_short', 'a', 'ab', '\ud83d\ude00\ud83d\ude00', 'too_long', 'e\u0301']);
    const detailOf = (text: string, bounds: object): unknown => FIELD_KINDS.string.fromJson(text, bounds).error?.detail;
    expect([detailOf('', { min: 1 }), detailOf('', { min: 2 }), detailOf('ab', { max: 1 })]).toEqual([
      'expected 1 character or more',
      'expected 2 characters or more',
      'expected 1 character or less',
    ]);
    expect(read(FIELD_KINDS.string, ['x', 'X'], { enum: ['x'] })).toEqual(['x', 'not_in_enum']);
    expect(read(FIELD_KINDS.string, ['x', 'X', 'Y'], { enum: ['x'], lower: true })).toEqual(['x', 'x', 'not_in_enum']);
  });

  it('int takes whole numbers within 2^53', () => {
    expect(
      read(FIELD_KINDS.int, [0, -0, 9007199254740991, -9007199254740991, 9007199254740992, 1.5, '5', true, Number.NaN]),
    ).toEqual([
      0,
      0,
      9007199254740991,
      -9007199254740991,
      'wrong_type',
      'wrong_type',
      'wrong_type',
      'wrong_type',
      'wrong_type',
    ]);
    expect(Object.is(read(FIELD_KINDS.int, [-0])[0], 0)).toBe(true);
    expect(read(FIELD_KINDS.int, [0, 1, 3, 4], { min: 1, max: 3 })).toEqual(['too_small', 1, 3, 'too_large']);
  });

  it('float takes finite numbers', () => {
    expect(read(FIELD_KINDS.float, [0.1, 1e308, 5e-324, Number.POSITIVE_INFINITY, Number.NaN, '1'])).toEqual([
      0.1,
      1e308,
      5e-324,
      'wrong_type',
      'wrong_type',
      'wrong_type',
    ]);
    expect(Object.is(read(FIELD_KINDS.float, [-0])[0], 0)).toBe(true);
  });

  it('bool takes true and false', () => {
    expect(read(FIELD_KINDS.bool, [true, false, 'true', 1, 0])).toEqual([
      true,
      false,
      'wrong_type',
      'wrong_type',
      'wrong_type',
    ]);
  });

  it('datetime takes RFC 3339 with an offset, and compares bounds as instants', () => {
    expect(
      read(FIELD_KINDS.datetime, [
        '2026-01-31T10:30:00+01:00',
        '2026-01-31',
        '2026-02-30T00:00:00Z',
        '2026-01-31T10:30:00.1234567Z',
        5,
      ]),
    ).toEqual(['2026-01-31T09:30:00.000000Z', 'wrong_type', 'wrong_type', 'wrong_type', 'wrong_type']);
    expect(
      read(FIELD_KINDS.datetime, ['2025-12-31T23:59:59.999999Z', '2026-01-01T00:30:00+00:00'], {
        min: '2026-01-01T00:00:00.000000Z',
      }),
    ).toEqual(['too_small', '2026-01-01T00:30:00.000000Z']);
  });

  it('date takes days of the calendar, and compares bounds', () => {
    expect(read(FIELD_KINDS.date, ['2024-02-29', '2023-02-29', '2024-02-29T00:00:00Z', 20240229, null])).toEqual([
      '2024-02-29',
      'wrong_type',
      'wrong_type',
      'wrong_type',
      'wrong_type',
    ]);
    const bounds = { min: '2024-01-01', max: '2024-12-31' };
    expect(read(FIELD_KINDS.date, ['2023-12-31', '2024-01-01', '2025-01-01'], bounds)).toEqual([
      'too_small',
      '2024-01-01',
      'too_large',
    ]);
  });

  it('time takes times of the day, and compares bounds', () => {
    const bounds = { min: '08:00:00', max: '18:00:00' };
    const given = ['07:59:59.999999', '08:00:00.000', '18:00:00.000001', '24:00:00', '9:00:00', 9];
    expect(read(FIELD_KINDS.time, given, bounds)).toEqual([
      'too_small',
      '08:00:00',
      'too_large',
      'wrong_type',
      'wrong_type',
      'wrong_type',
    ]);
  });

  it('bigint takes strings of 64-bit ints, and compares bounds by value', () => {
    const given = ['8', '9', '10', '100', '101', 10, '1.0', '9223372036854775808'];
    expect(read(FIELD_KINDS.bigint, given, { min: '9', max: '100' })).toEqual([
      'too_small',
      '9',
      '10',
      '100',
      'too_large',
      'wrong_type',
      'wrong_type',
      'wrong_type',
    ]);
  });

  it('decimal takes strings and exact numbers of its digits, and rounds nothing', () => {
    const digits = { precision: 4, scale: 2, min: '-50', max: '50.5' };
    const given = ['12.50', 12.5, '0.1', 1e-2, '12.345', 0.001, '123', '-123', '50.51', '-50.01', '1e1', 'x', true];
    expect(read(FIELD_KINDS.decimal, given, digits)).toEqual([
      '12.5',
      '12.5',
      '0.1',
      '0.01',
      'too_precise',
      'too_precise',
      'too_large',
      'too_small',
      'too_large',
      'too_small',
      'wrong_type',
      'wrong_type',
      'wrong_type',
    ]);
    expect(read(FIELD_KINDS.decimal, ['0.99', '1'], { precision: 2, scale: 2 })).toEqual(['0.99', 'too_large']);
  });

  it('id takes UUIDs in any letter case', () => {
    expect(
      read(keyKindOf({}), ['0190B0A0-0000-7000-8000-00000000000A', '0190b0a000007000800000000000000a', 5]),
    ).toEqual(['0190b0a0-0000-7000-8000-00000000000a', 'wrong_type', 'wrong_type']);
  });
});

describe('cells of PostgreSQL', () => {
  const cases = [
    [FIELD_KINDS.string, 'a"\\\n\u2028', JSON.stringify('a"\\\n\u2028'), 'a"\\\n\u2028'],
    [FIELD_KINDS.bool, 't', 'true', true],
    [FIELD_KINDS.bool, 'f', 'false', false],
    [FIELD_KINDS.int, '-9007199254740991', '-9007199254740991', -9007199254740991],
    [FIELD_KINDS.float, '1e-07', '1e-07', 1e-7],
    [FIELD_KINDS.float, '1.7976931348623157e+308', '1.7976931348623157e+308', Number.MAX_VALUE],
    [FIELD_KINDS.datetime, '2026-01-31 09:30:00+00', '"2026-01-31T09:30:00.000000Z"', '2026-01-31T09:30:00.000000Z'],
    [FIELD_KINDS.datetime, '0001-01-01 00:00:00.5+00', '"0001-01-01T00:00:00.500000Z"', '0001-01-01T00:00:00.500000Z'],
    [
      FIELD_KINDS.datetime,
      '9999-12-31 23:59:59.999999+00',
      '"9999-12-31T23:59:59.999999Z"',
      '9999-12-31T23:59:59.999999Z',
    ],
    [FIELD_KINDS.date, '0001-01-01', '"0001-01-01"', '0001-01-01'],
    [FIELD_KINDS.time, '23:59:59.5', '"23:59:59.5"', '23:59:59.5'],
    [FIELD_KINDS.bigint, '-9223372036854775808', '"-9223372036854775808"', '-9223372036854775808'],
    [FIELD_KINDS.bytes, '\\x', '""', '\\x'],
    [FIELD_KINDS.bytes, '\\x00ff', '"AP8="', '\\x00ff'],
    [FIELD_KINDS.decimal, '-12.50', '"-12.50"', '-12.5'],
    [FIELD_KINDS.decimal, '0.00', '"0.00"', '0'],
    [
      keyKindOf({}),
      '0190b0a0-0000-7000-8000-00000000000a',
      '"0190b0a0-0000-7000-8000-00000000000a"',
      '0190b0a0-0000-7000-8000-00000000000a',
    ],
  ] as const;

  it.each(cases)('%#: JSON and a value that agree', (kind, cell, json, value) => {
    expect([kind.toJson(cell), kind.fromCell(cell)]).toEqual([json, value]);
    const read = kind === keyKindOf({}) ? JSON.parse(json) : kind.fromJson(JSON.parse(json), {});
    expect(kind === keyKindOf({}) ? read : (read as { value: unknown }).value).toBe(value);
  });
});
