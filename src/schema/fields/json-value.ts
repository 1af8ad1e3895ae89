/** Any JSON value, as one value: policies ask only whether it is null. */
import { SCALARS } from '../../policy/scalar-types.ts';
import { InexactNumeral, parseString, plainNumeral } from '../../policy/values.ts';
import { asInPolicies, type FieldKind, type Read, type Rejected, reject } from './kind.ts';
import { jsonText } from './text-forms/jsonb-text.ts';

const MOST_JSON_BYTES = 65_536;
const MOST_JSON_LEVELS = 32;
/** The most characters of a number without its exponent: PostgreSQL holds more, and a short numeral may ask for millions. */
const MOST_OF_NUMBER = 400;

/** A number as it was written, in a parsed text. */
class WrittenNumber {
  readonly plain: string;
  constructor(source: string) {
    this.plain = plainNumeral(source);
  }
}

/** `JSON.parse` rounds numbers, which PostgreSQL does not. */
const parseExactly = (text: string): unknown =>
  JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? new WrittenNumber(context?.source ?? String(value)) : value,
  );

function plainOf(value: unknown): string | undefined {
  if (value instanceof WrittenNumber) return value.plain;
  if (value instanceof InexactNumeral) return plainNumeral(value.text);
  return typeof value === 'number' && Number.isFinite(value) ? plainNumeral(String(value)) : undefined;
}

/** Throws a rejection: a value may be refused at any depth. */
class NotStorable {
  readonly rejected: Rejected;
  constructor(code: string, detail: string) {
    this.rejected = reject(code, detail);
  }
}

function quotedJson(text: string): string {
  if (parseString(text) === undefined)
    throw new NotStorable('unstorable', 'a NUL or a lone surrogate cannot be stored');
  return JSON.stringify(text);
}

/** The one spelling of equal values: keys in order, numbers without an exponent. */
function spelled(value: unknown, level = 1): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return quotedJson(value);
  const plain = plainOf(value);
  if (plain !== undefined) {
    if (plain.length > MOST_OF_NUMBER)
      throw new NotStorable('too_large', `expected numbers of at most ${MOST_OF_NUMBER} digits`);
    return plain;
  }
  if (typeof value !== 'object') throw new NotStorable('wrong_type', `expected ${EXPECTED}`);
  if (level > MOST_JSON_LEVELS)
    throw new NotStorable('too_deep', `expected at most ${MOST_JSON_LEVELS} levels of lists and objects`);
  if (Array.isArray(value)) return `[${value.map((each) => spelled(each, level + 1)).join(',')}]`;
  const members = Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, each]) => `${quotedJson(key)}:${spelled(each, level + 1)}`).join(',')}}`;
}

const EXPECTED = 'a JSON value of at most 64 KiB';

function jsonFromJson(value: unknown): Read {
  try {
    const text = spelled(value);
    if (new TextEncoder().encode(text).length <= MOST_JSON_BYTES) return { value: text };
    return reject('too_long', `expected ${EXPECTED}`);
  } catch (error) {
    if (error instanceof NotStorable) return error.rejected;
    throw error;
  }
}

const NOT_JSON = Symbol('not JSON');

export const json: FieldKind = {
  name: 'json',
  doc: 'any JSON value of at most 64 KiB and 32 levels; numbers keep their digits, objects do not keep the order of their keys',
  ...asInPolicies(SCALARS.json),
  column: 'jsonb',
  // PostgreSQL prints spaces, and another order of keys.
  hasColumnDefault: false,
  expected: EXPECTED,
  bounds: 'none',
  hasEnum: false,
  isIndexable: false,
  fromJson: jsonFromJson,
  fromText(text) {
    try {
      return parseExactly(text);
    } catch {
      return NOT_JSON;
    }
  },
  toJson: String,
  fromCell: (cell) => spelled(parseExactly(cell)),
  text: jsonText(MOST_JSON_BYTES, MOST_JSON_LEVELS),
  jsonSchema: () => ({ type: ['object', 'array', 'string', 'number', 'boolean'] }),
  typescript: () => 'unknown',
  adoption: {
    narrower: [],
    storedAs: { json: { column: 'json', readAs: '::jsonb' } },
    defaultOf: (expression) => /^'(\{\}|\[\])'::jsonb$/.exec(expression)?.[1],
  },
};
