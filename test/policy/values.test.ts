import { describe, expect, it } from 'vitest';
import { SCALARS } from '../../src/policy/scalar-types.ts';
import {
  addSeconds,
  base64OfBytes,
  dayOf,
  InexactNumeral,
  parseBool,
  parseBytes,
  parseDate,
  parseDatetime,
  parseFloatText,
  parseInt53,
  parseInt64,
  parseTime,
  parseUnrounded,
  parseUuid,
  plainNumeral,
  rankNumerals,
  readDecimal,
} from '../../src/policy/values.ts';

const read = <T>(parse: (text: string) => T, texts: readonly string[]) => texts.map((text) => [text, parse(text)]);

describe('the readers of request values', () => {
  it('the reader of ints takes whole numbers within 2^53', () => {
    expect(read(parseInt53, ['0', '-7', '9007199254740991', '-9007199254740991', '-0'])).toEqual([
      ['0', 0],
      ['-7', -7],
      ['9007199254740991', 9007199254740991],
      ['-9007199254740991', -9007199254740991],
      ['-0', 0],
    ]);
    const absent = [
      '9007199254740992',
      '01',
      '+1',
      ' 1',
      '1 ',
      '1.0',
      '1e3',
      '',
      '-',
      '0x1',
      '１',
      '1\n',
      '1'.repeat(60000),
    ];
    expect(absent.filter((text) => parseInt53(text) !== undefined)).toEqual([]);
  });

  it('the reader of floats takes finite JSON numbers', () => {
    expect(parseFloatText('-1.5e3')).toBe(-1500);
    expect(Object.is(parseFloatText('-0'), 0)).toBe(true);
    expect(
      ['1e400', '.5', '5.', 'NaN', 'Infinity', '01', '1_0', ''].filter((t) => parseFloatText(t) !== undefined),
    ).toEqual([]);
  });

  it('the reader of numbers beside ints takes no fraction that rounding makes an int', () => {
    const taken = ['1.5', '3.0', '-0.0', '30e-1', '0.10000000000000000001', '9007199254740993', '9007199254740992.5'];
    expect(taken.map(parseUnrounded)).toEqual([1.5, 3, 0, 3, 0.1, 9007199254740992, 9007199254740992]);
    const refused = ['9007199254740991.4', '0.99999999999999999999', '-1.00000000000000000001', '1e-400', 'x', '1e400'];
    expect(refused.filter((text) => parseUnrounded(text) !== undefined)).toEqual([]);
  });

  it('the readers take bools and ids', () => {
    expect(['true', 'false', 'TRUE', '1', ''].map(parseBool)).toEqual([true, false, undefined, undefined, undefined]);
    expect(parseUuid('0190A6C0-0000-7000-8000-00000000000F')).toBe('0190a6c0-0000-7000-8000-00000000000f');
    expect(parseUuid('0190a6c000007000800000000000000f')).toBeUndefined();
    expect(parseUuid('{0190a6c0-0000-7000-8000-00000000000f}')).toBeUndefined();
  });

  it.each([
    ['2024-02-29T12:00:00Z', '2024-02-29T12:00:00.000000Z'],
    ['2024-02-29T12:00:00.1+02:00', '2024-02-29T10:00:00.100000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000Z'],
    ['0000-12-31T23:30:00-01:00', '0001-01-01T00:30:00.000000Z'],
    ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
    ['0050-06-01T00:00:00-00:00', '0050-06-01T00:00:00.000000Z'],
  ])('the reader of datetimes takes %s', (text, canonical) => {
    expect(parseDatetime(text)).toBe(canonical);
  });

  it.each([
    '2023-02-29T00:00:00Z',
    '2024-02-30T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T00:00:60Z',
    '2024-01-01T00:00:00',
    '2024-01-01',
    '2024-01-01t00:00:00z',
    '2024-01-01 00:00:00Z',
    '2024-01-01T00:00:00.1234567Z',
    '2024-01-01T00:00:00.Z',
    '2024-01-01T00:00:00+24:00',
    '0001-01-01T00:00:00+01:00',
    '9999-12-31T23:59:59-01:00',
    '0000-01-01T00:00:00Z',
    '2024-01-01T00:00:00Z\n',
  ])('the readers reject %j', (text) => {
    expect(parseDatetime(text)).toBeUndefined();
  });

  it.each([
    ['2024-02-29', '2024-02-29'],
    ['0001-01-01', '0001-01-01'],
    ['9999-12-31', '9999-12-31'],
    ['2023-02-29', undefined],
    ['1900-02-29', undefined],
    ['0000-12-31', undefined],
    ['2024-00-10', undefined],
    ['2024-1-01', undefined],
    ['2024-01-01T00:00:00Z', undefined],
    ['10000-01-01', undefined],
    ['2024-01-01\n', undefined],
  ])('the reader of dates takes %j as %j', (text, canonical) => {
    expect(parseDate(text)).toBe(canonical);
  });

  it.each([
    ['09:30:00', '09:30:00'],
    ['00:00:00.000000', '00:00:00'],
    ['10:20:30.100', '10:20:30.1'],
    ['23:59:59.999999', '23:59:59.999999'],
    ['24:00:00', undefined],
    ['23:60:00', undefined],
    ['23:59:60', undefined],
    ['9:30:00', undefined],
    ['09:30', undefined],
    ['09:30:00.', undefined],
    ['09:30:00.1234567', undefined],
    ['09:30:00Z', undefined],
    ['09:30:00\n', undefined],
  ])('the reader of times takes %j as %j', (text, canonical) => {
    expect(parseTime(text)).toBe(canonical);
  });

  it.each([
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['-0', '0'],
    ['9223372036854775808', undefined],
    ['-9223372036854775809', undefined],
    ['1.0', undefined],
    ['01', undefined],
    ['1e3', undefined],
    ['', undefined],
  ])('the reader of 64-bit ints takes %j as %j', (text, canonical) => {
    expect(parseInt64(text)).toBe(canonical);
  });

  it.each([
    ['0.0', '0'],
    ['-0e5', '0'],
    ['1.500', '1.5'],
    ['15e-1', '1.5'],
    ['-1.5e3', '-1500'],
    ['1e-3', '0.001'],
    ['120e-1', '12'],
    ['1e401', `1${'0'.repeat(400)}`],
    ['1e999999999999', `1${'0'.repeat(400)}`],
    ['-1e-999999999999', `-0.${'0'.repeat(400)}1`],
  ])('%s is plainly %s', (source, plain) => {
    expect(plainNumeral(source)).toBe(plain);
  });

  it('plain numerals compare by value', () => {
    const ascending = ['-100', '-9.75', '-9.5', '-9', '-0.1', '0', '0.05', '0.1', '9', '9.5', '9.75', '10', '100'];
    for (const [i, a] of ascending.entries())
      for (const [j, b] of ascending.entries()) expect(rankNumerals(a, b), `${a} ${b}`).toBe(Math.sign(i - j));
  });

  it.each([
    ['', '\\x'],
    ['YWI=', '\\x6162'],
    ['AP+/', '\\x00ffbf'],
    ['YWI', undefined],
    ['YWJ=', undefined],
    ['YW==\n', undefined],
    ['-_-_', undefined],
    ['\\x6162', undefined],
    ['A'.repeat(87_384), undefined],
  ])('the reader of bytes takes %j as %j', (text, canonical) => {
    expect(parseBytes(text)).toBe(canonical);
    if (canonical !== undefined) expect(base64OfBytes(canonical)).toBe(text);
  });

  it('the reader of bytes takes 64 KiB', () => {
    expect(parseBytes(Buffer.alloc(65_536).toString('base64'))).toHaveLength(2 + 2 * 65_536);
  });

  it.each([
    ['12.50', '12.5'],
    ['-0.00', '0'],
    ['0', '0'],
    ['9'.repeat(38), '9'.repeat(38)],
    ['9'.repeat(39), undefined],
    [`0.${'0'.repeat(37)}1`, `0.${'0'.repeat(37)}1`],
    [`0.${'0'.repeat(38)}1`, undefined],
    ['1e2', undefined],
    ['.5', undefined],
    ['5.', undefined],
    ['+1', undefined],
    ['NaN', undefined],
    [12.5, '12.5'],
    [1e-7, '0.0000001'],
    [1e21, '1000000000000000000000'],
    [1e39, undefined],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, undefined],
    [new InexactNumeral('9007199254740993'), '9007199254740993'],
    [new InexactNumeral('1e-400'), undefined],
    [true, undefined],
  ])('the reader of decimals takes %j as %j', (given, plain) => {
    expect(readDecimal(given)).toBe(plain);
  });

  it.each([
    ['UTC', '2024-02-28T23:59:59.999999Z', '2024-02-28'],
    ['Pacific/Kiritimati', '2024-02-28T09:59:59.999999Z', '2024-02-28'],
    ['Pacific/Kiritimati', '2024-02-28T10:00:00.000000Z', '2024-02-29'],
    ['America/New_York', '2024-03-10T04:59:59.000000Z', '2024-03-09'],
    ['America/New_York', '2024-07-10T04:00:00.000000Z', '2024-07-10'],
    ['America/New_York', '0001-01-01T00:00:00.000000Z', '0001-01-01'],
    ['Asia/Tokyo', '9999-12-31T23:59:59.999999Z', '9999-12-31'],
    ['Asia/Tokyo', '0099-06-15T00:00:00.500000Z', '0099-06-15'],
  ])('the day in %s of %s is %s', (zone, instant, day) => {
    expect(dayOf(instant, zone)).toBe(day);
  });

  it('days move by whole days, and stop at the ends of the calendar', () => {
    expect(dayOf('2024-02-28T12:00:00.000000Z', 'UTC', 86_400)).toBe('2024-02-29');
    expect(dayOf('2024-02-28T12:00:00.000000Z', 'UTC', 86_400 * 1e7)).toBe('9999-12-31');
    expect(dayOf('2024-02-28T12:00:00.000000Z', 'Asia/Tokyo', -86_400 * 1e7)).toBe('0001-01-01');
  });

  it('datetime arithmetic keeps microseconds, and stops at the ends of the calendar', () => {
    expect(addSeconds('2024-02-28T23:59:59.000001Z', 2)).toBe('2024-02-29T00:00:01.000001Z');
    expect(addSeconds('0099-12-31T23:59:59.000000Z', 1)).toBe('0100-01-01T00:00:00.000000Z');
    expect(addSeconds('2024-01-01T00:00:00.000000Z', -1e12)).toBe('0001-01-01T00:00:00.000000Z');
    expect(addSeconds('2024-01-01T00:00:00.000000Z', 1e12)).toBe('9999-12-31T23:59:59.999999Z');
  });

  it('JSON readers go by JSON type, query readers by text', () => {
    expect(SCALARS.int.readJson('5')).toBeUndefined();
    expect(SCALARS.int.readText('5')).toBe(5);
    expect([
      SCALARS.int.readJson(1.5),
      SCALARS.int.readJson(2 ** 53),
      SCALARS.float.readJson(1.5),
      SCALARS.float.readJson(Number.NaN),
    ]).toEqual([undefined, undefined, 1.5, undefined]);
    expect([
      SCALARS.bool.readJson(true),
      SCALARS.bool.readJson(1),
      SCALARS.string.readJson(1),
      SCALARS.string.readJson(null),
    ]).toEqual([true, undefined, undefined, undefined]);
    expect([SCALARS.string.readText('a\0'), SCALARS.string.readText('\ud800'), SCALARS.string.readText('😀')]).toEqual([
      undefined,
      undefined,
      '😀',
    ]);
    expect(SCALARS.string.readJson(['a'])).toBeUndefined();
  });
});
