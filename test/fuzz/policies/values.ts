/** Values that translators trip over. Small pools, so that equality is met often. */

import type { ElementOfList, ListType } from '../../../src/policy/scalar-types.ts';
import { listText } from '../../../src/policy/scalars/list-values.ts';
import type { ScalarType } from '../../../src/policy/types.ts';
import type { Scalar } from '../../../src/policy/values.ts';
import type { Random } from '../random.ts';

export const TEXTS: readonly string[] = [
  '',
  'a',
  'A',
  'b',
  'ab',
  'abc',
  'ba',
  'a%',
  'a_',
  '%',
  '_',
  '\\',
  'a\\%',
  "it's",
  '"',
  '{a}',
  'a,b',
  'NULL',
  'null',
  'true',
  '1',
  ' a',
  'é',
  'e\u0301',
  '\u0301',
  'ß',
  'İ',
  'ΑΣ',
  'ας',
  'ﬁ',
  'Ａ%',
  'Å',
  '가',
  'z',
  '\u{1F600}',
  'a\u{1F600}',
  '\uE000',
  '\uFFFF',
  '\uFFFD',
  '\u{10FFFF}',
  'a\u{10FFFF}',
  '\u{10FFFF}\u{10FFFF}',
  'a\u{10FFFF}\u{10FFFF}',
  '\u{10FFFF}\u{10FFFF}\u{10FFFF}',
  '\u{10000}',
  '\uD7FF',
  'a\uD7FF',
  '__proto__',
  'constructor',
  'admin',
  'member',
  '$1',
  '--',
  '\b\f\n\r\t',
  '\f',
  'a/b',
  '\u007f\u2028',
];
export const INTS: readonly number[] = [
  0, 1, -1, 2, 3, 5, 10, -5, 9007199254740991, -9007199254740991, 9007199254740990,
];
export const FLOATS: readonly number[] = [
  0, -0, 1, -1, 1.5, -1.5, 2, 0.1, 0.30000000000000004, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308,
  9007199254740992, 9007199254740991, 1e21,
];
export const NOW = '2024-03-01T12:00:00.000001Z';
export const DATETIMES: readonly string[] = [
  '0001-01-01T00:00:00.000000Z',
  '9999-12-31T23:59:59.999999Z',
  '1969-12-31T23:59:59.999999Z',
  '2024-02-29T12:00:00.000001Z',
  NOW,
  '2024-03-01T12:00:00.000000Z',
  '2024-03-01T12:00:00.000002Z',
  '2024-03-02T12:00:00.000001Z',
  '2024-03-01T11:59:59.999999Z',
  '0099-06-15T00:00:00.500000Z',
  '2024-03-01T12:00:00.500000Z',
  '2024-03-01T12:00:00.000005Z',
];
/** Other ways to write an instant; all of them can be read. */
export const DATETIME_SPELLINGS: readonly string[] = [
  ...DATETIMES,
  '2024-03-01T12:00:00Z',
  '2024-03-01T12:00:00.5Z',
  '2024-03-01T12:00:00.50+00:00',
  '2024-03-01T14:00:00.000001+02:00',
  '2024-02-29T23:30:00.000001-12:30',
  '2024-03-01T12:00:00.00+00:00',
  '0001-01-01T01:00:00+01:00',
  '2024-03-02T12:00:00.000001-00:00',
];

/** The days of the instants, in some zones the days beside them, and days that readers trip over. */
export const DATES: readonly string[] = [
  '0001-01-01',
  '9999-12-31',
  '1969-12-31',
  '1900-02-28',
  '2000-02-29',
  '2024-02-29',
  '2024-03-01',
  '2024-03-02',
  '0099-06-15',
];

const TIMES: readonly string[] = [
  '00:00:00',
  '23:59:59.999999',
  '00:00:00.000001',
  '12:00:00',
  '12:00:00.5',
  '12:00:00.45',
  '12:00:00.05',
  '12:00:10',
  '09:30:00',
];
export const TIME_SPELLINGS: readonly string[] = [
  ...TIMES,
  '12:00:00.500000',
  '12:00:00.50',
  '12:00:00.0',
  '12:00:10.000000',
];

export const BIGINTS: readonly string[] = [
  '0',
  '1',
  '-1',
  '2',
  '5',
  '10',
  '-5',
  '-10',
  '9007199254740992',
  '9007199254740993',
  '-9007199254740993',
  '9223372036854775807',
  '9223372036854775806',
  '-9223372036854775808',
];
/** Around the ends of the range, and no whole numbers. */
export const BIGINT_NUMERALS: readonly string[] = [
  ...BIGINTS,
  '9223372036854775808',
  '-9223372036854775809',
  '9223372036854775806.5',
  '92233720368547758070e-1',
  '0.5',
  '-0.5',
  '1.5',
  '1e1',
  '-0',
  '1e400',
  '-1e400',
  '1e-400',
  '-1e-999999999',
  '1e999999999',
];

const UUIDS: readonly string[] = [
  '00000000-0000-0000-0000-000000000000',
  '00000000-0000-0000-0000-00000000000a',
  '01234567-89ab-cdef-0123-456789abcdef',
  '80000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
];
export const UUID_SPELLINGS: readonly string[] = [...UUIDS, ...UUIDS.map((text) => text.toUpperCase())];
/** Base64, and the form in which records have it. */
export const BYTES: readonly string[] = ['', 'AA==', 'AAA=', '/w==', '+/+/', 'XHg=', 'YWI=', 'YWJj', 'Jw=='];
const hexOf = (base64: string): string => `\\x${Buffer.from(base64, 'base64').toString('hex')}`;

/** As records have them: without zeros after the last decimal. */
const DECIMALS: readonly string[] = [
  '0',
  '1',
  '-1',
  '2',
  '10',
  '9.5',
  '9.75',
  '-9.5',
  '-10',
  '0.1',
  '0.05',
  '0.30000000000000004',
  '9007199254740993',
  '9999999999999999999',
  '-9999999999999999999',
  '0.0000000000000000001',
  '-9999999999999999999.9999999999999999999',
];
export const DECIMAL_NUMERALS: readonly string[] = [
  ...DECIMALS,
  '9.50',
  '95e-1',
  '1.0e1',
  '-0.0',
  '0.3',
  '9007199254740992.9999999999999999999',
  '10000000000000000000',
  '99999999999999999999999999999999999999.5',
  '1e38',
  '-1e38',
  '0.00000000000000000000000000000000000001',
  '0.000000000000000000000000000000000000001',
  '1e400',
  '-1e400',
  '1e-400',
  '1e999999999',
  '-1e-999999999',
];
/** A JSON body may give these, too. */
export const DECIMAL_INPUTS: readonly (string | number)[] = [
  ...DECIMALS,
  '9.50',
  '-0',
  '0.0',
  9.5,
  0.1,
  -10,
  1e-7,
  1e15,
];

/** Short and with repetitions, so that many lists have a given value. */
function listOf(type: ListType, random: Random): Scalar[] {
  const element = type.slice(0, -2) as ElementOfList;
  const length = random.pick([0, 1, 1, 2, 2, 3, 5]);
  return Array.from({ length }, () => scalarOf(element, random));
}

export const LIST_TYPES: readonly ListType[] = ['string[]', 'int[]', 'float[]', 'bool[]', 'date[]', 'datetime[]'];
const isListType = (type: ScalarType): type is ListType => type.endsWith('[]');

/** As records have them: without spaces, keys in order. */
const JSON_TEXTS: readonly string[] = [
  '{}',
  '[]',
  '0',
  '""',
  'false',
  '[null]',
  '{"a":1,"b":["x",0.5]}',
  '{"a":{"a":{}}}',
  '{"a":"x","b":{"n":1,"f":1.5,"ok":true,"s":"a"}}',
  '{"a":"a","b":{"n":9007199254740991,"f":-1.5,"ok":false,"s":""}}',
  '{"a":"","b":{"n":9007199254740992,"f":9007199254740993,"ok":"true","s":null}}',
  '{"a":null,"b":{"n":9007199254740991.4,"f":0.1,"ok":1,"s":["a"]}}',
  `{"b":{"n":-1,"f":${`1${'0'.repeat(300)}`},"ok":null,"s":"😀"}}`,
  `{"b":{"n":"1","f":${`9${'0'.repeat(299)}`},"ok":true,"s":{"s":"a"}}}`,
  `{"b":{"n":1.5,"f":${`0.${'0'.repeat(299)}1`},"s":"\uffff"}}`,
  `{"b":{"n":0,"f":${`-0.${'0'.repeat(300)}1`}}}`,
];

/** Paths into them. */
export const JSON_PATHS = { a: 'string', 'b.s': 'string', 'b.n': 'int', 'b.f': 'float', 'b.ok': 'bool' } as const;

/** Places at the poles, at both sides of the line of dates, close together, and at the ends of the range. */
export const POINTS: readonly { readonly lat: number; readonly lng: number }[] = [
  { lat: 0, lng: 0 },
  { lat: 0, lng: 1e-7 },
  { lat: 52.1, lng: 4.3 },
  { lat: 52.100001, lng: 4.3 },
  { lat: 52.12, lng: 4.35 },
  { lat: -52.1, lng: -175.7 },
  { lat: 0, lng: 180 },
  { lat: 0, lng: -180 },
  { lat: 10, lng: 179.99 },
  { lat: 10, lng: -179.99 },
  { lat: 90, lng: 0 },
  { lat: 89.99, lng: 170 },
  { lat: -90, lng: -180 },
  { lat: 48.85661400000001, lng: 2.3522219 },
];
const pointText = ({ lat, lng }: (typeof POINTS)[number]): string => `(${lng},${lat})`;

/** A JSON body has a list as an array. */
export const bodyOf = (type: ScalarType, random: Random): Scalar | readonly Scalar[] =>
  type === 'json'
    ? JSON.parse(random.pick(JSON_TEXTS))
    : type === 'point'
      ? (random.pick(POINTS) as never)
      : isListType(type)
        ? listOf(type, random)
        : scalarOf(type, random);

export function scalarOf(type: ScalarType, random: Random): Scalar {
  if (isListType(type)) return listText(listOf(type, random));
  if (type === 'json') return random.pick(JSON_TEXTS);
  if (type === 'point') return pointText(random.pick(POINTS));
  switch (type) {
    case 'string':
      return random.pick(TEXTS);
    case 'int':
      return random.pick(INTS);
    case 'float':
      return random.pick(FLOATS);
    case 'bool':
      return random.chance(0.5);
    case 'datetime':
      return random.pick(DATETIMES);
    case 'date':
      return random.pick(DATES);
    case 'decimal':
      return random.pick(DECIMALS);
    case 'uuid':
      return random.pick(UUIDS);
    case 'bytes':
      return hexOf(random.pick(BYTES));
    case 'bigint':
      return random.pick(BIGINTS);
    case 'time':
      return random.pick(TIMES);
  }
}

/** Values of query parameters: readable as a type, nearly readable, and not readable. */
const ODD_TEXTS: readonly string[] = ['a\0b', '\0', '\uD800', 'a\uDC00'];
const ODD_NUMBERS: readonly string[] = [
  '01',
  '+1',
  ' 1',
  '1 ',
  '1\n',
  '-0',
  '1.0',
  '1e0',
  '1e999',
  '9007199254740992',
  '-9007199254740993',
  'NaN',
  'Infinity',
  '0x10',
  '.5',
  '5.',
];
const BOOLS: readonly string[] = ['true', 'false', 'true', 'false', 'TRUE', 't', 'yes', '1'];
/** Well formed, and rejected for one reason alone. */
const NO_DATETIMES: readonly string[] = [
  '2024-02-30T00:00:00Z',
  '2023-02-29T00:00:00Z',
  '9999-12-31T23:59:59.999999-00:01',
];
const ODD_DATETIMES: readonly string[] = [
  'now',
  'today',
  'infinity',
  ...NO_DATETIMES,
  '2024-03-01T24:00:00Z',
  '2024-03-01T23:59:60Z',
  '2024-03-01 12:00:00Z',
  '2024-03-01t12:00:00z',
  '2024-03-01T12:00:00.0000001Z',
  '2024-03-01T12:00:00',
  '2024-03-01',
  '0000-12-31T23:59:59Z',
  '0001-01-01T00:00:00+00:01',
  '2024-03-01T12:00:00+24:00',
];
/** Well formed, and rejected for one reason alone. */
const NO_DATES: readonly string[] = [
  '2024-02-30',
  '2023-02-29',
  '1900-02-29',
  '0000-12-31',
  '2024-04-31',
  '2024-13-01',
];
const ODD_DATES: readonly string[] = [
  'today',
  'infinity',
  'epoch',
  ...NO_DATES,
  '2024-3-1',
  '20240301',
  '2024-060',
  '2024-03-01T00:00:00Z',
  '01.03.2024',
  '10000-01-01',
  '2024-03-01 BC',
  ' 2024-03-01',
  '2024-03-00',
];
/** Well formed, and rejected for one reason alone. */
const NO_TIMES: readonly string[] = ['24:00:00', '23:59:60', '23:60:00', '12:00:00.1234567'];
const ODD_TIMES: readonly string[] = [
  ...NO_TIMES,
  '12:00',
  '9:30:00',
  '12:00:00Z',
  '12:00:00+02',
  '12:00:00.',
  'now',
  'allballs',
  '24:00:00.000001',
  '12:00:00 PM',
  'T12:00:00',
  '12:00:00,5',
];
const ODD_BIGINTS: readonly string[] = [
  '9223372036854775808',
  '-9223372036854775809',
  '99999999999999999999',
  '01',
  '+1',
  '1.0',
  '1e1',
  '-0',
  '0x10',
  ' 1',
  '1\n',
  '٣',
];
const ODD_UUIDS: readonly string[] = [
  '{01234567-89ab-cdef-0123-456789abcdef}',
  '0123456789abcdef0123456789abcdef',
  'urn:uuid:01234567-89ab-cdef-0123-456789abcdef',
  '01234567-89ab-cdef-0123-456789abcdeg',
  ' 01234567-89ab-cdef-0123-456789abcdef',
];
/** Well formed, but for bits after the last byte. */
const NO_BYTES: readonly string[] = ['AB==', '/x==', 'YWJ=', 'AAB=', 'XHh='];
const ODD_BYTES: readonly string[] = [
  ...NO_BYTES,
  ...NO_BYTES,
  'AA',
  'AA=',
  'AAA',
  'A===',
  '-_-_',
  'YW Jj',
  'YWJj\n',
  '====',
  'é',
];
const ODD_DECIMALS: readonly string[] = [
  '9.50',
  '-0',
  '0.0',
  '1e1',
  '01',
  '+1',
  '.5',
  '5.',
  ' 1',
  '1,5',
  'NaN',
  'Infinity',
  '1e999999999',
  '9'.repeat(39),
  `0.${'0'.repeat(38)}1`,
];
const ODD_IDS: readonly string[] = ['{00000000-0000-4000-8000-000000000000}', '00000000000040008000000000000000'];

/** Keyed by the parameter that mostly holds a value of that type. */
export const THEMES: Readonly<Record<string, readonly string[]>> = {
  k1: [...TEXTS, ...ODD_TEXTS, ...ODD_TEXTS, ...ODD_TEXTS, ...ODD_TEXTS],
  k2: [...INTS.map(String), ...FLOATS.map(String), ...ODD_NUMBERS],
  k3: BOOLS,
  k4: [...DATETIME_SPELLINGS, ...ODD_DATETIMES, ...NO_DATETIMES, ...NO_DATETIMES, ...NO_DATETIMES],
  k9: [...UUID_SPELLINGS, ...ODD_UUIDS],
  k10: [...BYTES, ...NO_BYTES, ...ODD_BYTES],
  k11: [...DECIMALS, ...DECIMALS, ...ODD_DECIMALS],
  k8: [...BIGINTS, ...BIGINTS, ...ODD_BIGINTS],
  k7: [...TIME_SPELLINGS, ...TIME_SPELLINGS, ...ODD_TIMES, ...NO_TIMES],
  k6: [...DATES, ...DATES, ...ODD_DATES, ...NO_DATES],
};
export const QUERY_TEXTS: readonly string[] = [...Object.values(THEMES).flat(), ...ODD_IDS];
