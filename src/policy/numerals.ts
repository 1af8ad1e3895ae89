/**
 * Number literals against number columns, by value and never rounded. A literal that no double holds is compared as the decimal that was written.
 */
import type { CompareOp } from '../../grammar/syntax.ts';

/** What a comparison of a present number with a literal comes to: a comparison with a number that the column's type holds, or a settled answer. */
export type NumberTest = { readonly op: CompareOp; readonly value: number } | boolean;
type Comparison = '=' | '!=' | '<' | '<=' | '>' | '>=';

interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

function readDecimal(source: string): Decimal {
  const [mantissa = '', exponent = '0'] = source.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

const powerOf = (base: bigint, exponent: number): bigint => base ** BigInt(exponent);

/** A finite double as an exact fraction. */
function fractionOf(value: number): { readonly numerator: bigint; readonly denominator: bigint } {
  let scaled = value;
  let shift = 0;
  // Doubling is exact, and 1,100 doublings make the least subnormal whole.
  while (!Number.isInteger(scaled)) {
    scaled *= 2;
    shift++;
  }
  return { numerator: BigInt(scaled), denominator: powerOf(2n, shift) };
}

/** The sign of `value − source`. */
function compareWithDecimal(value: number, source: string): number {
  if (value === Number.POSITIVE_INFINITY) return 1;
  if (value === Number.NEGATIVE_INFINITY) return -1;
  const { digits, exponent } = readDecimal(source);
  // `value` is the double nearest to the source, so a zero means an underflow and the sign of the digits decides.
  if (value === 0 || digits === 0n) return signOf(fractionOf(value).numerator - digits);
  const { numerator, denominator } = fractionOf(value);
  const left = exponent < 0 ? numerator * powerOf(10n, -exponent) : numerator;
  const right = exponent < 0 ? digits * denominator : digits * denominator * powerOf(10n, exponent);
  return signOf(left - right);
}

const signOf = (value: bigint): number => (value > 0n ? 1 : value < 0n ? -1 : 0);

/** For a number that lies strictly between two neighbours of the column's type: only the ordering with the lower one is left to ask. */
function between(op: Comparison, below: number): NumberTest {
  switch (op) {
    case '=':
      return false;
    case '!=':
      return true;
    case '<':
    case '<=':
      return { op: '<=', value: below };
    case '>':
    case '>=':
      return { op: '>', value: below };
  }
}

/** For a number above (or below) all that the column holds. */
function beyond(op: Comparison, above: boolean): boolean {
  if (op === '=' || op === '!=') return op === '!=';
  return above === (op === '<' || op === '<=');
}

const isComparison = (op: CompareOp): op is Comparison =>
  op === '=' || op === '!=' || op === '<' || op === '<=' || op === '>' || op === '>=';

/** `column op literal`, for an int column (whole numbers within ±(2^53−1)) or a float column (finite doubles). */
export function numberTest(
  column: 'int' | 'float',
  op: CompareOp,
  literal: { readonly value: number; readonly exact?: string | undefined },
): NumberTest {
  if (!isComparison(op)) throw new TypeError(`${op} compares no numbers`);
  return column === 'int' ? intTest(op, literal) : floatTest(op, literal);
}

function intTest(
  op: Comparison,
  { value, exact }: { readonly value: number; readonly exact?: string | undefined },
): NumberTest {
  const off = exact === undefined ? 0 : compareWithDecimal(value, exact);
  // A double beyond 2^53 is whole, and no stored int reaches it, whichever way it was rounded.
  if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) return beyond(op, value > 0);
  if (Number.isInteger(value)) return off === 0 ? { op, value } : between(op, off > 0 ? value - 1 : value);
  return wholeBetween(op, Math.floor(value));
}

/** As authors read it: `n >= 1.5` is `n >= 2`. */
function wholeBetween(op: Comparison, floor: number): NumberTest {
  const test = between(op, floor);
  return typeof test === 'object' && test.op === '>' ? { op: '>=', value: floor + 1 } : test;
}

function floatTest(
  op: Comparison,
  { value, exact }: { readonly value: number; readonly exact?: string | undefined },
): NumberTest {
  if (!Number.isFinite(value)) return beyond(op, value > 0);
  const off = exact === undefined ? 0 : compareWithDecimal(value, exact);
  if (off === 0) return { op, value };
  if (op === '=' || op === '!=') return op === '!=';
  // The literal lies just below `value` (off > 0) or just above it.
  const less = op === '<' || op === '<=';
  return off > 0 ? { op: less ? '<' : '>=', value } : { op: less ? '<=' : '>', value };
}

/** Two present numbers of a request and a policy. */
export function holdsForNumber(
  op: CompareOp,
  left: number,
  literal: { readonly value: number; readonly exact?: string | undefined },
): boolean {
  const test = numberTest('float', op, literal);
  return typeof test === 'boolean' ? test : holdsBetween(test.op as Comparison, left, test.value);
}

function holdsBetween(op: Comparison, left: number, right: number): boolean {
  switch (op) {
    case '=':
      return left === right;
    case '!=':
      return left !== right;
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
  }
}

/** The sign of `left − right`, of two numerals as they were written. No power is raised, however large their exponents. */
export function compareNumerals(left: string, right: string): number {
  const [a, b] = [readDecimal(left), readDecimal(right)];
  const sign = signOf(a.digits);
  if (sign !== signOf(b.digits) || sign === 0) return sign - signOf(b.digits);
  const [x, y] = [a, b].map(({ digits }) => String(digits < 0n ? -digits : digits)) as [string, string];
  const [places, otherPlaces] = [x.length + a.exponent, y.length + b.exponent];
  if (places !== otherPlaces) return places < otherPlaces ? -sign : sign;
  const length = Math.max(x.length, y.length);
  const [padded, otherPadded] = [x.padEnd(length, '0'), y.padEnd(length, '0')];
  return padded === otherPadded ? 0 : padded < otherPadded ? -sign : sign;
}

/** Two numerals, by what was written. */
export function holdsForNumerals(op: CompareOp, left: string, right: string): boolean {
  if (!isComparison(op)) throw new TypeError(`${op} compares no numbers`);
  return holdsBetween(op, compareNumerals(left, right), 0);
}
