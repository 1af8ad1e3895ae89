/** The structure of a JSON text is checked before it is parsed, and no numeral is rounded to an int. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JSON_LIMITS, JsonStructureError, parseFileJson, parseJson } from '../../src/http/json-text.ts';
import { InexactNumeral } from '../../src/policy/values.ts';

const parse = (text: string): unknown => parseJson(Buffer.from(text));
const messageOf = (text: string): string => {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof JsonStructureError) return error.message;
    throw error;
  }
  return 'parsed';
};

test('a value that JSON can write is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 10 }), (text) => {
      expect(parse(text)).toEqual(JSON.parse(text));
    }),
    { numRuns: 500 },
  );
});

test('a text that JSON.parse rejects is rejected', () => {
  for (const text of ['{', '"', '"\\', '[1,]', '{"a":}', '{"a" 1}', 'nul', '1 2', '}', '{"\\u00":1}', '{"a\\'])
    expect(() => parse(text)).toThrow();
});

describe('limits', () => {
  test('a text of the greatest depth passes, a deeper one does not', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect([messageOf(nested(JSON_LIMITS.depth)), messageOf(nested(JSON_LIMITS.depth + 1))]).toEqual([
      'parsed',
      'the body is nested more than 32 levels deep',
    ]);
  });

  test('a text of the most tokens passes, a larger one does not', () => {
    const list = (values: number) => `[${Array.from({ length: values }, () => '1').join(',')}]`;
    const object = (members: number) => `{${Array.from({ length: members }, (_, i) => `"${i}":1`).join(',')}}`;
    expect([
      messageOf(list(JSON_LIMITS.tokens - 1)),
      messageOf(list(JSON_LIMITS.tokens)),
      messageOf(object(JSON_LIMITS.tokens / 2)),
    ]).toEqual(['parsed', ...Array(2).fill('the body holds more than 20000 values and names')]);
  });

  test('the check stops at the first excess', () => {
    const hostile = Buffer.from('['.repeat(8 * 1024 * 1024));
    const since = process.cpuUsage();
    expect(messageOf(hostile.toString())).toContain('nested');
    const { user } = process.cpuUsage(since);
    expect(user).toBeLessThan(1_000_000);
  });
});

test.each([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"ä":1,"ä":2}', 'ä'],
  ['{"ä":1,"\\u00e4":2}', 'ä'],
  ['[{"b":{"a":1}},{"x":{"a":1,"c":[],"a":2}}]', 'a'],
])('%s gives a key twice', (text, key) => {
  expect(messageOf(text)).toBe(`the key "${key}" is given twice in one object`);
});

describe('numerals', () => {
  test.each([
    '9007199254740991.4',
    '1.00000000000000000001',
    '-4503599627370496.00000001',
    '90071992547409914e-1',
    '1e-400',
    '9007199254740993',
    '0.1000000000000000055',
    '123456789012345678.25',
  ])('%s is no int, and the nearest double for a float', (text) => {
    expect(parse(`{"n":[${text}]}`)).toEqual({ n: [new InexactNumeral(text)] });
    expect(parseFileJson(`{"n":[${text}]}`)).toEqual({ n: [new InexactNumeral(text)] });
  });

  test.each([
    '1.0',
    '1e3',
    '10e-1',
    '1.50e1',
    '0.1',
    '-0.0',
    '1.5',
    '1e300',
    '9007199254740992',
    '0.30000000000000004',
    '1.7976931348623157e308',
    '0e-5',
  ])('%s is the number that JSON.parse reads', (text) => {
    expect(parse(text)).toBe(JSON.parse(text));
    expect(parseFileJson(text)).toBe(JSON.parse(text));
  });
});
