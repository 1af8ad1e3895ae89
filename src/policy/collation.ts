/**
 * Orders strings by Unicode code point: PostgreSQL's "C" collation over UTF-8, not the UTF-16 order
 * of JavaScript's `<`.
 */

const SURROGATES = 0xd800;

/** Below zero, zero, above zero. */
export function compareText(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const a = left.charCodeAt(i);
    const b = right.charCodeAt(i);
    if (a !== b) return rankOfUnit(a) - rankOfUnit(b);
  }
  return left.length - right.length;
}

/** A surrogate encodes a code point above U+FFFF, so it ranks above U+E000…U+FFFF. */
function rankOfUnit(unit: number): number {
  if (unit < SURROGATES) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

const LAST_CODE_POINT = 0x10ffff;

/**
 * The least well-formed string above every string that starts with `prefix`; none for the empty
 * string and for a run of U+10FFFF.
 */
export function successorOf(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  // Surrogates are not characters: U+E000 follows U+D7FF.
  points.push(last === SURROGATES - 1 ? 0xe000 : last + 1);
  return points.map((point) => String.fromCodePoint(point)).join('');
}
