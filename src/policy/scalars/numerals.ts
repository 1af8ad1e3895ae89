/**
 * Number literals against number columns, by value and never rounded. A literal that no double
 * holds is compared as the decimal that was written.
 */
import type { CompareOp } from '../../../grammar/syntax.ts';
import { equalityOf, OPERATORS, type Operator, orderOf } from '../operators.ts';
import { isWhole, type ValueType } from '../scalar-types.ts';
import { isWithinGrid, type NumeralGrid, plainNumeral, rankNumerals } from '../values.ts';

/**
 * The result of reducing a comparison with a literal: a comparison with a number that the column's
 * type holds, or a constant.
 */
export type NumberTest<T = number> = { readonly op: CompareOp; readonly value: T } | boolean;
/** A number literal; `exact` is its decimal source if no double equals it. */
export interface ExactNumber {
  readonly value: number;
  readonly exact?: string | undefined;
}

interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

function decimalParts(source: string): Decimal {
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
  const { digits, exponent } = decimalParts(source);
  // `value` is the double nearest to the source, so a zero means an underflow and the sign of the
  // digits decides.
  if (value === 0 || digits === 0n) return signOf(fractionOf(value).numerator - digits);
  const { numerator, denominator } = fractionOf(value);
  const left = exponent < 0 ? numerator * powerOf(10n, -exponent) : numerator;
  const right = exponent < 0 ? digits * denominator : digits * denominator * powerOf(10n, exponent);
  return signOf(left - right);
}

const signOf = (value: bigint): number => (value > 0n ? 1 : value < 0n ? -1 : 0);

/**
 * Decides a number strictly between two neighbouring values of the column's type: comparing with
 * the lower one suffices.
 */
function between<T>({ direction, negative }: Operator, below: T): NumberTest<T> {
  if (direction === undefined) return negative === true;
  return { op: orderOf(direction, direction === 'up'), value: below };
}

/** Decides a number above (or below) all values of the column's type. */
function beyond({ direction, negative }: Operator, above: boolean): boolean {
  if (direction === undefined) return negative === true;
  return above === (direction === 'down');
}

function numeralComparison(op: CompareOp): Operator {
  const operator = OPERATORS[op];
  if (operator.family !== 'equality' && operator.family !== 'order')
    throw new TypeError(`${op} does not compare numbers`);
  return operator;
}

/** `column op literal`, for an int column (integers within ±(2^53−1)) or a float column (finite doubles). */
export function numberTest(column: ValueType, op: CompareOp, literal: ExactNumber): NumberTest {
  const operator = numeralComparison(op);
  return isWhole(column) ? intTest(operator, literal) : floatTest(operator, literal);
}

/** True if a number of the column's type can equal the literal. */
export const canEqual = (column: ValueType, literal: ExactNumber): boolean =>
  typeof numberTest(column, equalityOf(true), literal) === 'object';

function intTest(operator: Operator, { value, exact }: ExactNumber): NumberTest {
  const off = exact === undefined ? 0 : compareWithDecimal(value, exact);
  // A double beyond 2^53 is an integer, and no stored int reaches it, in either direction of rounding.
  if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) return beyond(operator, value > 0);
  if (Number.isInteger(value))
    return off === 0 ? { op: operator.symbol, value } : between(operator, off > 0 ? value - 1 : value);
  return wholeBetween(operator, Math.floor(value));
}

/** The form that authors read: `n >= 1.5` is `n >= 2`. */
function wholeBetween(operator: Operator, floor: number): NumberTest {
  if (operator.direction === 'up') return { op: orderOf('up', false), value: floor + 1 };
  return between(operator, floor);
}

function floatTest(operator: Operator, { value, exact }: ExactNumber): NumberTest {
  const { symbol: op, direction, negative } = operator;
  if (!Number.isFinite(value)) return beyond(operator, value > 0);
  const off = exact === undefined ? 0 : compareWithDecimal(value, exact);
  if (off === 0) return { op, value };
  if (direction === undefined) return negative === true;
  // The literal lies just below `value` (off > 0) or just above it.
  return { op: orderOf(direction, off > 0 === (direction === 'down')), value };
}

/** `column op literal`, for a column of plain numerals. */
export function gridTest(grid: NumeralGrid, op: CompareOp, literal: string): NumberTest<string> {
  const operator = numeralComparison(op);
  if (!isWithinGrid(grid, literal)) return beyond(operator, rankNumerals(literal, grid.greatest) > 0);
  const below = flooredTo(grid.decimals, literal);
  return below === literal ? { op, value: literal } : between(operator, below);
}

/** True if a value of the grid can equal the literal. */
export const isOnGrid = (grid: NumeralGrid, literal: string): boolean =>
  typeof gridTest(grid, equalityOf(true), literal) === 'object';

/** The greatest numeral of so many decimals that is not above. */
function flooredTo(decimals: number, numeral: string): string {
  const [whole = '', fraction = ''] = numeral.split('.');
  if (fraction.length <= decimals) return numeral;
  const cut = BigInt(whole + fraction.slice(0, decimals)) - (numeral.startsWith('-') ? 1n : 0n);
  return plainNumeral(`${cut}e-${decimals}`);
}

/** Compares a number of a request with one of a policy. */
export function holdsForNumber(op: CompareOp, left: number, literal: ExactNumber): boolean {
  const test = numberTest('float', op, literal);
  return typeof test === 'boolean' ? test : OPERATORS[test.op].holds(left, test.value);
}

/**
 * The sign of `left − right` for two numerals as written. Never computes a power, however large the
 * exponents.
 */
export function compareNumerals(left: string, right: string): number {
  const [a, b] = [decimalParts(left), decimalParts(right)];
  const sign = signOf(a.digits);
  if (sign !== signOf(b.digits) || sign === 0) return sign - signOf(b.digits);
  const [x, y] = [magnitudeOf(a.digits), magnitudeOf(b.digits)];
  const [places, otherPlaces] = [x.length + a.exponent, y.length + b.exponent];
  if (places !== otherPlaces) return places < otherPlaces ? -sign : sign;
  const length = Math.max(x.length, y.length);
  const [padded, otherPadded] = [x.padEnd(length, '0'), y.padEnd(length, '0')];
  if (padded === otherPadded) return 0;
  return padded < otherPadded ? -sign : sign;
}

const magnitudeOf = (digits: bigint): string => String(digits < 0n ? -digits : digits);

/** Compares two numerals as written. */
export function holdsForNumerals(op: CompareOp, left: string, right: string): boolean {
  return numeralComparison(op).holds(compareNumerals(left, right), 0);
}
