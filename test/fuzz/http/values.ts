/** Values that services have stumbled over: quotation, encodings, numbers, names of internals, and long runs. */
import type { Random } from '../random.ts';

const TEXTS = [
  '',
  ' ',
  'null',
  'undefined',
  'NaN',
  'true',
  '[]',
  '{}',
  '0',
  '-0',
  '-1',
  '1e400',
  '9007199254740993',
  '00000000-0000-0000-0000-000000000000',
  "'",
  '"',
  '\\',
  '`',
  "' OR 1=1--",
  '"; DROP TABLE posts; --',
  "'||pg_sleep(5)||'",
  '$1',
  '$$',
  '%',
  '%00',
  '%zz',
  '%2e%2e%2f',
  '../../etc/passwd',
  '..\\..\\win.ini',
  '/dev/null',
  '\u0000',
  '\r\nX-Injected: 1',
  '\t',
  '\u202e',
  '\ufeff',
  '\ud800',
  '\udc00x',
  'ſ\u212a',
  '日本語',
  '😀',
  'e\u0301',
  '<script>alert(1)</script>',
  '{{7*7}}',
  '${7*7}',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '@request.auth.id',
  '@record.author = @request.auth.id',
  'javascript:alert(1)',
  '//evil.example',
  '2026-02-30T25:61:61Z',
  '0001-01-01T00:00:00+14:00',
  '9999-12-31T23:59:60Z',
  'a@b.org',
  '"a"<x@y.org>@z.org',
] as const;

const RUNS = [
  ' ',
  '\\',
  '"',
  "'",
  ',',
  ';',
  '=',
  '.',
  '-',
  '*',
  '/',
  '%',
  '(',
  '[',
  '{',
  '\t',
  'a',
  '0',
  '&',
  '+',
  '<',
  '\\"',
  '; a',
  ',a',
  '"a",',
  '%20',
  'é',
];

/** Any text. */
export function hostileText(random: Random, most = 6_000): string {
  const text = random.pick(TEXTS);
  switch (random.below(8)) {
    case 0:
      return runOf(random, most);
    case 1:
      return `${random.pick(TEXTS)}${runOf(random, most)}${random.pick(TEXTS)}`;
    case 2:
      return text + random.pick(TEXTS);
    default:
      return text;
  }
}

export function runOf(random: Random, most: number): string {
  const unit = random.pick(RUNS);
  const length = random.chance(0.2) ? most : random.below(200);
  return unit.repeat(Math.ceil(length / unit.length));
}

/** Anything that JSON can say. */
export function hostileJson(random: Random, depth = 0): unknown {
  if (depth > 3 || random.chance(0.6)) {
    return random.pick([null, true, false, 0, -1, 1.5, 1e308, -0, 2 ** 53, 2 ** 63, hostileText(random, 500)]);
  }
  const length = random.chance(0.05) ? 300 : random.below(4);
  if (random.chance(0.5)) return Array.from({ length }, () => hostileJson(random, depth + 1));
  return Object.fromEntries(
    Array.from({ length }, (_, i) => [`${hostileText(random, 50)}${i || ''}`, hostileJson(random, depth + 1)]),
  );
}

/** Texts that are not JSON, or that two parsers read differently. */
export function brokenJson(random: Random): Buffer {
  const text = random.pick([
    '{',
    '[[',
    '{"data":{}}}',
    '{"data":{"title":"a","title":"b"}}',
    '\ufeff{"data":{}}',
    '{"data":NaN}',
    "{'data':{}}",
    '{"data":{"score":01}}',
    '{"data":{"title":"\\ud800"}}',
    '{"data":{"title":"\\u0000"}}',
    '{"data":{"score":1e999}}',
    `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
    `{"data":${'{"a":'.repeat(40)}1${'}'.repeat(40)}}`,
    `"${'\\'.repeat(3_001)}`,
    `{"data":{${Array.from({ length: 3_000 }, (_, i) => `"k${i}":0`).join(',')}}}`,
    '',
  ]);
  if (random.chance(0.1)) return Buffer.from([0x7b, 0xff, 0xfe, 0x7d]);
  return Buffer.from(text);
}
