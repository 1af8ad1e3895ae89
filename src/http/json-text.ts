/**
 * Checks a JSON text before it is parsed, in one pass over its bytes that stops at the first excess: a parser builds all
 * that it reads, and 1 MiB of brackets or of keys held up all requests for a second. The same pass finds what JSON.parse
 * lets pass: equal keys, of which the last one wins, and numerals that it rounds to another integer.
 */
import { InexactNumeral, plainNumeral } from '../policy/values.ts';

export const JSON_LIMITS = { depth: 32, tokens: 20_000 } as const;

/** A text is refused for its structure; the message says why. */
export class JsonStructureError extends Error {}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/**
 * The value of a JSON text. Throws JsonStructureError, and what JSON.parse throws. A numeral that rounding to a
 * double changes is an `InexactNumeral`, so that no int takes it, and a decimal has its digits.
 */
export function parseJson(bytes: Buffer): unknown {
  const hasInexact = checkStructure(bytes);
  const text = bytes.toString();
  return hasInexact ? JSON.parse(text, keepInexact) : JSON.parse(text);
}

/** The value of a JSON text of a file, whose structure has no limits: its numerals are those of `parseJson`. */
export const parseFileJson = (text: string): unknown =>
  MAY_BE_INEXACT.test(text) ? JSON.parse(text, keepInexact) : JSON.parse(text);

/** A fraction, a negative exponent, or many digits. Strings have them too; the reviver then finds nothing. */
const MAY_BE_INEXACT = /[0-9](?:\.[0-9]|[eE]-)|[0-9]{16}/;

/** True if a numeral is inexact. */
function checkStructure(bytes: Buffer): boolean {
  /** The keys so far of each open object; undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  let tokens = 0;
  let hasInexact = false;
  /** The bounds of the last string, with its quotation marks. */
  let start = 0;
  let end = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    switch (byte) {
      case QUOTE:
        start = at;
        at = lastOfString(bytes, at);
        end = at + 1;
        break;
      case COLON:
        addKey(open.at(-1), bytes.toString('latin1', start, end));
        continue;
      case OPEN_OBJECT:
      case OPEN_LIST:
        open.push(byte === OPEN_OBJECT ? new Set() : undefined);
        if (open.length > JSON_LIMITS.depth)
          throw new JsonStructureError(`the body is nested more than ${JSON_LIMITS.depth} levels deep`);
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        open.pop();
        continue;
      case COMMA:
        continue;
      default: {
        if (byte <= SPACE) continue;
        const from = at;
        at = lastOfScalar(bytes, at);
        hasInexact ||= isInexact(bytes.toString('latin1', from, at + 1));
      }
    }
    if (++tokens > JSON_LIMITS.tokens)
      throw new JsonStructureError(`the body holds more than ${JSON_LIMITS.tokens} values and names`);
  }
  return hasInexact;
}

/** The closing quotation mark, or the end of a text that has none. */
function lastOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** The last byte of a number or of a word. */
function lastOfScalar(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && !ENDS_SCALAR.has(bytes[at]!)) at++;
  return at - 1;
}

const ENDS_SCALAR = new Set([0x09, 0x0a, 0x0d, SPACE, QUOTE, COMMA, COLON, CLOSE_LIST, CLOSE_OBJECT]);

/** Keys are compared as bytes in Latin-1, which keeps every byte, unless an escape may hide an equal one. */
function addKey(keys: Set<string> | undefined, token: string): void {
  const key = token.includes('\\') ? unescapedKey(token) : token.slice(1, -1);
  if (keys?.has(key))
    throw new JsonStructureError(`the key ${JSON.stringify(utf8Of(key))} is given twice in one object`);
  keys?.add(key);
}

const utf8Of = (latin1: string): string => Buffer.from(latin1, 'latin1').toString();

function unescapedKey(token: string): string {
  try {
    return Buffer.from(JSON.parse(utf8Of(token)) as string).toString('latin1');
  } catch {
    // JSON.parse of the whole text reports it.
    return token;
  }
}

const FRACTION = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Returns true if rounding to a double changes the digits of a numeral, or makes an integer of one with a fraction. */
function isInexact(numeral: string): boolean {
  const [, whole, fraction = '', exponent = '0'] = FRACTION.exec(numeral) ?? [];
  // Doubles hold all numbers of up to 15 digits apart.
  if (whole !== undefined && whole.length + fraction.length > 15) {
    const value = Number(numeral);
    return Number.isFinite(value) && plainNumeral(String(value)) !== plainNumeral(numeral);
  }
  if (whole === undefined || (fraction === '' && !exponent.startsWith('-'))) return false;
  if (!Number.isSafeInteger(Number(numeral))) return false;
  const digits = whole + fraction;
  const places = fraction.length - Number(exponent);
  const lost = places <= 0 ? '' : digits.slice(Math.max(0, digits.length - places));
  return /[1-9]/.test(lost);
}

function keepInexact(_: string, value: unknown, { source }: { readonly source?: string } = {}): unknown {
  return typeof value === 'number' && source !== undefined && isInexact(source) ? new InexactNumeral(source) : value;
}
