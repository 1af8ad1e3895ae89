/** The values of the types: their order, and values between two others. A type without an entry is not reasoned about. */

import { rank } from '../../operators.ts';
import {
  elementOf,
  type IdType,
  isTo,
  type KeyKind,
  type ScalarKind,
  scalarOf,
  type ValueType,
} from '../../scalar-types.ts';
import { plainNumeral, type Scalar, withoutTrailingZeros } from '../../values.ts';

/** Values as whole numbers, in their order. */
interface Ladder {
  readonly least: bigint;
  readonly greatest: bigint;
  /** The first value to take where any will do. */
  readonly start: bigint;
  rung(value: Scalar): bigint;
  value(rung: bigint): Scalar;
}
export interface Domain {
  /** `list`: only its presence is a fact; its elements are rows. */
  readonly kind: 'id' | 'number' | 'text' | 'truth' | 'ladder' | 'list';
  readonly type: ValueType;
  readonly ladder?: Ladder;
  compare(left: Scalar, right: Scalar): number;
}
export interface DomainBound {
  readonly value: Scalar;
  readonly strict: boolean;
}
export interface Range {
  readonly low?: DomainBound | undefined;
  readonly high?: DomainBound | undefined;
  /** Numbers: whole ones alone. */
  readonly isWhole: boolean;
  /** Rungs between neighbours. */
  readonly step: bigint;
  /** Values before the first of the type, and after the last, are in a range without that end. */
  readonly isOpenEnded?: boolean;
}

const MICROS = 1_000_000n;
const DAY = 86_400n * MICROS;
/** The decimals of a rung of a numeral. */
export const DECIMAL_PLACES = 38;

const floorDivided = (value: bigint, by: bigint): bigint => {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
};
const microsOf = (text: Scalar): bigint =>
  BigInt(Date.parse(`${String(text).slice(0, 19)}Z`)) * 1000n + BigInt(String(text).slice(20, 26));
function instantAt(rung: bigint): string {
  const seconds = floorDivided(rung, MICROS);
  const micros = String(rung - seconds * MICROS).padStart(6, '0');
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${micros}Z`;
}
/** The instant in the middle, or the first where none lies between. */
export const instantBetween = (first: string, second: string): string =>
  instantAt((microsOf(first) + microsOf(second)) / 2n);
const dayOfText = (text: Scalar): bigint => BigInt(Date.parse(String(text)) / 86_400_000);
const dayAt = (rung: bigint): string => new Date(Number(rung) * 86_400_000).toISOString().slice(0, 10);
function timeAt(rung: bigint): string {
  const text = instantAt(rung).slice(11, 26);
  const decimals = withoutTrailingZeros(text.slice(9));
  return decimals === '' ? text.slice(0, 8) : `${text.slice(0, 8)}.${decimals}`;
}
function timeRung(text: Scalar): bigint {
  const [clock = '', decimals = ''] = String(text).split('.');
  return microsOf(`1970-01-01T${clock}.${decimals.padEnd(6, '0')}Z`);
}
function numeralRung(text: Scalar): bigint {
  const numeral = String(text);
  const [whole = '', fraction = ''] = numeral.replace('-', '').split('.');
  const digits = BigInt(whole + fraction.padEnd(DECIMAL_PLACES, '0'));
  return numeral.startsWith('-') ? -digits : digits;
}
const hexOf = (rung: bigint, digits: number): string => rung.toString(16).padStart(digits, '0');
function uuidAt(rung: bigint): string {
  const hex = hexOf(rung, 32);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

const NUMERIC_END = 10n ** 76n - 1n;
const INSTANTS = { least: microsOf('0001-01-01T00:00:00.000000Z'), greatest: microsOf('9999-12-31T23:59:59.999999Z') };
/** A uuid of version 7 of the year 2026. */
const FIRST_UUID = 0x019b_7000_0000_7000_8000_0000_0000_0001n;

/** The key is the type of a parameter in SQL, which no two types share, numbers aside. */
const LADDERS: Readonly<Partial<Record<string, Ladder>>> = {
  int8: { least: -(2n ** 63n), greatest: 2n ** 63n - 1n, start: 0n, rung: (text) => BigInt(text), value: String },
  numeric: {
    least: -NUMERIC_END,
    greatest: NUMERIC_END,
    start: 0n,
    rung: numeralRung,
    value: (rung) => plainNumeral(`${rung}e-${DECIMAL_PLACES}`),
  },
  timestamptz: { ...INSTANTS, start: microsOf('2026-01-01T00:00:00.000000Z'), rung: microsOf, value: instantAt },
  date: {
    least: floorDivided(INSTANTS.least, DAY),
    greatest: floorDivided(INSTANTS.greatest, DAY),
    start: dayOfText('2026-01-01'),
    rung: dayOfText,
    value: dayAt,
  },
  time: { least: 0n, greatest: DAY - 1n, start: 32_400n * MICROS, rung: timeRung, value: timeAt },
  uuid: {
    least: 0n,
    greatest: 2n ** 128n - 1n,
    start: FIRST_UUID,
    rung: (text) => BigInt(`0x${String(text).replaceAll('-', '')}`),
    value: uuidAt,
  },
  // `{}` and numbers represent the values of json; points of the equator represent all points.
  jsonb: {
    least: 0n,
    greatest: 2n ** 53n - 1n,
    start: 0n,
    rung: (text) => (text === '{}' ? 0n : BigInt(text)),
    value: (rung) => (rung === 0n ? '{}' : String(rung)),
  },
  point: {
    least: 0n,
    greatest: 179n,
    start: 0n,
    rung: (text) => BigInt(/\d+/.exec(String(text))![0]),
    value: (rung) => `(${rung},0)`,
  },
  bytea: {
    least: 0n,
    greatest: 0xffff_ffffn,
    start: 0x6869_0000n,
    rung: (text) => BigInt(`0x${String(text).slice(2) || '0'}`),
    value: (rung) => `\\x${hexOf(rung, 8)}`,
  },
};

export const uuidNumber = (number: number): string => uuidAt(FIRST_UUID + BigInt(number) * 2n ** 16n);

/** Int ids of different collections differ from each other, and from the numbers that policies are likely to state. */
const UNUSUAL = 9_000;
const IDS: Readonly<Record<KeyKind, (number: number) => string>> = {
  uuid: uuidNumber,
  int: (number) => String(UNUSUAL + number),
  string: (number) => `k${UNUSUAL + number}`,
};
/** The text of an id that no policy states, one for each number. */
export const idNumber = ({ key = 'uuid' }: IdType, number: number): string => IDS[key](number);

/** The id as policies see it. */
export const idValue = (type: IdType, text: string): Scalar => scalarOf(type).readText(text) ?? text;

/** A record may have the id. */
export const isIdText = (type: IdType, text: string): boolean => {
  const read = scalarOf(type).readText(text);
  return read !== undefined && String(read) === text;
};

const known = new Map<ValueType, Domain | undefined>();

/** Undefined: the solver does not know values of the type. */
export function domainOf(type: ValueType): Domain | undefined {
  if (isTo(type)) return { kind: 'id', type, compare: (left, right) => rank(left, right) };
  if (!known.has(type)) known.set(type, madeDomain(type, scalarOf(type)));
  return known.get(type);
}

function madeDomain(type: ValueType, kind: ScalarKind): Domain | undefined {
  const compare = (left: Scalar, right: Scalar): number => rank(left, right, type);
  if (kind.numbers !== undefined) return { kind: 'number', type, compare };
  if (kind.text) return { kind: 'text', type, compare };
  if (kind.truth) return { kind: 'truth', type, compare };
  if (elementOf(type) !== undefined) return { kind: 'list', type, compare };
  const ladder = Object.hasOwn(LADDERS, kind.sqlType) ? LADDERS[kind.sqlType] : undefined;
  return ladder && { kind: 'ladder', type, ladder, compare };
}

/** Values that are not of the type can be in the range. */
export const hasOtherValues = ({ isOpenEnded, low, high }: Range): boolean =>
  isOpenEnded === true && (low === undefined || high === undefined);

/** True if no value is within the range. Never true otherwise. */
export function isEmptyRange(domain: Domain, range: Range): boolean {
  const { low, high } = range;
  if (low === undefined && high === undefined) return false;
  if (hasOtherValues(range)) return false;
  if (domain.kind !== 'text') return domain.kind !== 'id' && valuesWithin(domain, range, 1).length === 0;
  if (low === undefined || high === undefined) return false;
  const order = domain.compare(low.value, high.value);
  return order > 0 || (order === 0 && (low.strict || high.strict));
}

/** Up to `count` values of the range, as many as there are if there are fewer. Not for texts and ids. */
export function valuesWithin(domain: Domain, range: Range, count: number): readonly Scalar[] {
  if (domain.kind === 'truth') return [false, true].slice(0, count);
  if (domain.kind === 'number') return numbersWithin(range, count);
  return domain.ladder === undefined ? [] : rungsWithin(domain.ladder, range, count);
}

function rungsWithin(ladder: Ladder, { low, high, step }: Range, count: number): readonly Scalar[] {
  const upward = (value: bigint): bigint => -floorDivided(-value, step) * step;
  const least = upward(low === undefined ? ladder.least : ladder.rung(low.value) + (low.strict ? 1n : 0n));
  const most = high === undefined ? ladder.greatest : ladder.rung(high.value) - (high.strict ? 1n : 0n);
  const greatest = floorDivided(most, step) * step;
  // Without a lower bound, the usual values come first, and those below them afterwards.
  const isLow = low === undefined && ladder.start <= greatest;
  const from = low !== undefined ? least : isLow ? upward(ladder.start) : greatest;
  const found: Scalar[] = [];
  for (let rung = from; rung <= greatest && rung >= least && found.length < count; rung += step)
    found.push(ladder.value(rung));
  for (let rung = from - step; low === undefined && rung >= least && found.length < count; rung -= step)
    found.push(ladder.value(rung));
  return found;
}

function numbersWithin(range: Range, count: number): readonly number[] {
  return range.isWhole ? wholesWithin(range, count) : doublesWithin(range, count);
}

function wholesWithin({ low, high }: Range, count: number): readonly number[] {
  const least = low === undefined ? Number.MIN_SAFE_INTEGER : firstWhole(low);
  const greatest = high === undefined ? Number.MAX_SAFE_INTEGER : -firstWhole({ ...high, value: -Number(high.value) });
  const found: number[] = [];
  const start = low === undefined ? Math.min(0, greatest) : least;
  for (let value = start; value <= greatest && found.length < count; value++) found.push(value + 0);
  for (let value = start - 1; low === undefined && value >= least && found.length < count; value--) found.push(value);
  return found;
}

const firstWhole = ({ value, strict }: DomainBound): number => {
  const number = Number(value);
  return Number.isInteger(number) ? (strict ? number + 1 : number) : Math.ceil(number);
};

function doublesWithin(range: Range, count: number): readonly number[] {
  const { low, high } = range;
  const found = new Set<number>();
  const add = (value: number): void => {
    if (Number.isFinite(value) && isInRange(value, range) && found.size < count) found.add(value + 0);
  };
  for (const value of wholesWithin({ ...range, isWhole: true }, count)) add(value);
  const [from, to] = [Number(low?.value ?? -Number.MAX_VALUE), Number(high?.value ?? Number.MAX_VALUE)];
  for (const end of [from, to]) add(end);
  for (let parts = 2; parts <= 4 * count && found.size < count; parts *= 2)
    for (let i = 1; i < parts; i += 2) add(from + (to / parts - from / parts) * i);
  return [...found];
}

export function isInRange(value: Scalar, { low, high }: Range, compare = rank as Domain['compare']): boolean {
  if (low !== undefined) {
    const order = compare(value, low.value);
    if (order < 0 || (order === 0 && low.strict)) return false;
  }
  if (high === undefined) return true;
  const order = compare(value, high.value);
  return order < 0 || (order === 0 && !high.strict);
}
