/**
 * Strict, total parsers for values of a request. A value that they cannot parse is `undefined`, so
 * no value of a request ever reaches a cast in the database. Datetimes are RFC 3339 with an offset.
 */
import { JSON_NUMBER } from '../../grammar/tokens.ts';

export type Scalar = string | number | boolean;

/** A numeral of a JSON text that rounding to a double changes: a float takes the nearest double, an int nothing, a decimal its digits. */
export class InexactNumeral {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Reads own properties only: a missing one is undefined, even if the prototype has it. */
export const own = (values: Readonly<Record<string, unknown>> | null | undefined, name: string): unknown =>
  values != null && Object.hasOwn(values, name) ? values[name] : undefined;

const INT = /^-?(?:0|[1-9][0-9]*)$/;
const UUID_FORMAT = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;
const DATETIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|([+-])(\d\d):(\d\d))$/;

const FIRST_INSTANT = '0001-01-01T00:00:00.000000Z';
const LAST_INSTANT = '9999-12-31T23:59:59.999999Z';
const FIRST_SECOND = -62135596800;
const LAST_SECOND = 253402300799;

// Adding zero turns −0, which PostgreSQL's int8 does not have and which float columns store as 0, into 0.
const withoutNegativeZero = (value: number): number => value + 0;

export function parseInt53(text: string): number | undefined {
  if (text.length > 17 || !INT.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? withoutNegativeZero(value) : undefined;
}

export function parseFloatText(text: string): number | undefined {
  if (!JSON_NUMBER.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? withoutNegativeZero(value) : undefined;
}

/** Takes a number that compares with every int as its double does: unless rounding makes an int of it, it lies between the same ints. */
export function parseUnrounded(text: string): number | undefined {
  const value = parseFloatText(text);
  return Number.isSafeInteger(value) && plainNumeral(text) !== String(value) ? undefined : value;
}

export function parseBool(text: string): boolean | undefined {
  if (text === 'true') return true;
  return text === 'false' ? false : undefined;
}

/** Takes any letter case, with dashes; returns lower case. */
/** No address can end in an empty part, `.` or `..`, so these identify no record. */
export const parseKeyText = (text: string): string | undefined =>
  text === '' || text === '.' || text === '..' ? undefined : parseString(text);

export function parseUuid(text: string): string | undefined {
  return text.length === 36 && UUID_FORMAT.test(text) ? text.toLowerCase() : undefined;
}

/** PostgreSQL rejects other strings: those with NUL or a lone surrogate. */
export const parseString = (text: string): string | undefined =>
  text.isWellFormed() && !text.includes('\0') ? text : undefined;

/** A surrogate pair is one code point. */
export function lengthInCodePoints(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length - 1; i++) if (text.codePointAt(i)! > 0xffff) length--;
  return length;
}

const LONG_MONTHS = new Set([1, 3, 5, 7, 8, 10, 12]);

function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return LONG_MONTHS.has(month) ? 31 : 30;
}

interface CivilTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

function exists({ year, month, day, hour, minute, second }: CivilTime): boolean {
  return (
    month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month) && hour <= 23 && minute <= 59 && second <= 59
  );
}

function epochSeconds({ year, month, day, hour, minute, second }: CivilTime): number {
  const date = new Date(0);
  // Date.UTC would read the years 0…99 as 1900…1999.
  date.setUTCFullYear(year, month - 1, day);
  return date.getTime() / 1000 + hour * 3600 + minute * 60 + second;
}

function canonicalOf(seconds: number, micros: string): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${micros}Z`;
}

let lastSecond = Number.NaN;
/** `YYYY-MM-DDTHH:MM:SS.` */
let secondText = '';

/** The canonical text of a moment, as `parseDatetime` gives it. */
export function datetimeOf(moment: Date): string {
  const time = moment.getTime();
  const second = Math.floor(time / 1000);
  if (second !== lastSecond) {
    secondText = moment.toISOString().slice(0, -4);
    lastSecond = second;
  }
  return `${secondText}${String(time - second * 1000).padStart(3, '0')}000Z`;
}

/** → `YYYY-MM-DDTHH:MM:SS.ffffffZ`; the years 0001 to 9999 in UTC, no leap second, no seventh decimal. */
export function parseDatetime(text: string): string | undefined {
  const match = text.length <= 32 ? DATETIME.exec(text) : null;
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const time: CivilTime = { year, month, day, hour, minute, second };
  const offset = offsetSeconds(match[8], match[9], match[10]);
  if (!exists(time) || offset === undefined) return undefined;
  const seconds = epochSeconds(time) - offset;
  if (seconds < FIRST_SECOND || seconds > LAST_SECOND) return undefined;
  return canonicalOf(seconds, (match[7] ?? '').padEnd(6, '0'));
}

function offsetSeconds(sign: string | undefined, hours = '0', minutes = '0'): number | undefined {
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const seconds = Number(hours) * 3600 + Number(minutes) * 60;
  return sign === '-' ? -seconds : seconds;
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;

/** `YYYY-MM-DD`, which is canonical; the years 0001 to 9999. */
export function parseDate(text: string): string | undefined {
  const match = text.length === 10 ? DATE.exec(text) : null;
  if (match === null) return undefined;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  return year >= 1 && exists({ year, month, day, hour: 0, minute: 0, second: 0 }) ? text : undefined;
}

const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?$/;

/** → `HH:MM:SS`, with the decimals that are not zero: times compare as these strings. No 24:00, no leap second, no offset. */
export function parseTime(text: string): string | undefined {
  if (text.length > 15 || !TIME.test(text)) return undefined;
  if (text.length === 8) return text;
  const decimals = withoutTrailingZeros(text.slice(9));
  return decimals === '' ? text.slice(0, 8) : `${text.slice(0, 8)}.${decimals}`;
}

/**
 * A JSON numeral as its plain digits without superfluous zeros: equal numbers have equal texts. Numbers beyond 10^400, and
 * nearer to zero than 10^-400, are one such number: no stored value is as far out.
 */
export function plainNumeral(source: string): string {
  const [mantissa = '', exponent = '0'] = source.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return '0';
  const sign = source.startsWith('-') ? '-' : '';
  const places = fraction.length - Number(exponent);
  const magnitude = digits.length - places;
  if (magnitude > FARTHEST) return `${sign}1${'0'.repeat(FARTHEST)}`;
  if (magnitude < -FARTHEST) return `${sign}0.${'0'.repeat(FARTHEST)}1`;
  if (places <= 0) return `${sign}${digits}${'0'.repeat(-places)}`;
  const padded = digits.padStart(places + 1, '0');
  const decimals = withoutTrailingZeros(padded.slice(-places));
  return `${sign}${padded.slice(0, -places)}${decimals === '' ? '' : `.${decimals}`}`;
}

const FARTHEST = 400;

/** A loop: `/0+$/` takes quadratic time where zeros are many and not at the end. */
export function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return digits.slice(0, end);
}

/** Compares two plain numerals by value. */
export function rankNumerals(left: string, right: string): number {
  const isNegative = left.startsWith('-');
  if (isNegative !== right.startsWith('-')) return isNegative ? -1 : 1;
  const order = isNegative ? rankMagnitudes(right, left) : rankMagnitudes(left, right);
  return Math.sign(order);
}

function rankMagnitudes(left: string, right: string): number {
  const lengths = wholeLength(left) - wholeLength(right);
  if (lengths !== 0) return lengths;
  return left < right ? -1 : left > right ? 1 : 0;
}

const wholeLength = (numeral: string): number => {
  const point = numeral.indexOf('.');
  return point < 0 ? numeral.length : point;
};

/** The plain numerals that a type holds. */
export interface NumeralGrid {
  readonly least: string;
  readonly greatest: string;
  /** The most decimals that a value has. */
  readonly decimals: number;
}
export const INT64: NumeralGrid = { least: '-9223372036854775808', greatest: '9223372036854775807', decimals: 0 };

export const isWithinGrid = ({ least, greatest }: NumeralGrid, numeral: string): boolean =>
  rankNumerals(numeral, least) >= 0 && rankNumerals(numeral, greatest) <= 0;

/** → the plain digits; within the range of PostgreSQL's int8. */
export function parseInt64(text: string): string | undefined {
  if (text.length > 20 || !INT.test(text)) return undefined;
  return text === '-0' ? '0' : isWithinGrid(INT64, text) ? text : undefined;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const HEX_BYTES = /^\\x(?:[0-9a-f]{2})*$/;
/** The bytes of a value. */
export const MOST_BYTES_OF_VALUE = 65_536;

/** Base64 with its padding → the text that PostgreSQL prints, `\x6869`, in which equal bytes are equal. */
export function parseBytes(text: string): string | undefined {
  if (text.length > Math.ceil(MOST_BYTES_OF_VALUE / 3) * 4 || !BASE64.test(text)) return undefined;
  const binary = atob(text);
  // The bits after the last byte are zero.
  if (binary.length > MOST_BYTES_OF_VALUE || btoa(binary) !== text) return undefined;
  let hex = '\\x';
  for (let i = 0; i < binary.length; i++) hex += binary.charCodeAt(i).toString(16).padStart(2, '0');
  return hex;
}

/** The inverse of `parseBytes`. */
export function base64OfBytes(hex: string): string {
  let binary = '';
  for (let i = 2; i < hex.length; i += 2) binary += String.fromCharCode(Number.parseInt(hex.slice(i, i + 2), 16));
  return btoa(binary);
}

/** Takes what `parseBytes` returns, too: a record has its values in that form. */
export const readBytes = (value: unknown): string | undefined => {
  if (typeof value !== 'string') return undefined;
  return HEX_BYTES.test(value) ? value : parseBytes(value);
};

/** Values of decimals have at most so many digits. */
export const MOST_DIGITS = 38;
const NINES = '9'.repeat(MOST_DIGITS);
export const DECIMALS: NumeralGrid = {
  least: `-${NINES}.${NINES}`,
  greatest: `${NINES}.${NINES}`,
  decimals: MOST_DIGITS,
};
const DECIMAL = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/;

/** → the plain digits, `12.5` for `12.50`. No exponent. */
export const parseDecimal = (text: string): string | undefined =>
  text.length <= 2 * MOST_DIGITS + 2 && DECIMAL.test(text) ? decimalOf(text) : undefined;

/** Takes the numbers of JSON too, by the digits that were written. */
export function readDecimal(value: unknown): string | undefined {
  if (typeof value === 'string') return parseDecimal(value);
  if (value instanceof InexactNumeral) return decimalOf(value.text);
  // A numeral that is not the shortest of its double is an `InexactNumeral`.
  return typeof value === 'number' && Number.isFinite(value) ? decimalOf(String(value)) : undefined;
}

function decimalOf(source: string): string | undefined {
  const plain = plainNumeral(source);
  const [, fraction = ''] = plain.split('.');
  return fraction.length <= MOST_DIGITS && isWithinGrid(DECIMALS, plain) ? plain : undefined;
}

const FIRST_DAY = FIRST_INSTANT.slice(0, 10);
const LAST_DAY = LAST_INSTANT.slice(0, 10);
/** Zones come from schemas, so there are few. */
const dayFormats = new Map<string, Intl.DateTimeFormat>();

function dayFormatOf(zone: string): Intl.DateTimeFormat {
  const known = dayFormats.get(zone);
  if (known !== undefined) return known;
  const parts = { era: 'short', year: 'numeric', month: '2-digit', day: '2-digit' } as const;
  const format = new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', { timeZone: zone, ...parts });
  dayFormats.set(zone, format);
  return format;
}

/** The default of `timezone:`. */
export const UTC = 'UTC';

/** The day of a canonical instant in a time zone, moved. Total: clamps to the years 0001 to 9999. */
export function dayOf(instant: string, zone: string, seconds = 0): string {
  const day = zone === UTC ? instant.slice(0, 10) : localDay(instant, zone);
  return addSeconds(`${day}T00:00:00.000000Z`, seconds).slice(0, 10);
}

/** The value of `@now` or `@today`. */
export const movedNow = (
  now: string,
  { seconds, zone }: { readonly seconds: number; readonly zone?: string },
): string => (zone === undefined ? addSeconds(now, seconds) : dayOf(now, zone, seconds));

function localDay(instant: string, zone: string): string {
  const parts = new Map<string, string>();
  for (const { type, value } of dayFormatOf(zone).formatToParts(Date.parse(instant))) parts.set(type, value);
  if (parts.get('era') !== 'AD') return FIRST_DAY;
  const year = parts.get('year')!.padStart(4, '0');
  return year.length > 4 ? LAST_DAY : `${year}-${parts.get('month')}-${parts.get('day')}`;
}

/** Takes canonical text. Total: clamps to the years 0001 to 9999. */
export function addSeconds(canonical: string, seconds: number): string {
  if (seconds === 0) return canonical;
  const sum = Date.parse(`${canonical.slice(0, 19)}Z`) / 1000 + seconds;
  if (sum < FIRST_SECOND) return FIRST_INSTANT;
  return sum > LAST_SECOND ? LAST_INSTANT : canonicalOf(sum, canonical.slice(20, 26));
}

export const readInt53 = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) ? withoutNegativeZero(value) : undefined;

export function readFloat(value: unknown): number | undefined {
  const number = value instanceof InexactNumeral ? Number(value.text) : value;
  return typeof number === 'number' && Number.isFinite(number) ? withoutNegativeZero(number) : undefined;
}

export const readUnrounded = (value: unknown): number | undefined =>
  value instanceof InexactNumeral ? parseUnrounded(value.text) : readFloat(value);

/** `{ lat, lng }` in degrees → `(lng,lat)`. */
export function readPoint(value: unknown): string | undefined {
  const { lat, lng, ...others } = Object(value) as Readonly<Record<string, unknown>>;
  const isPlace = [lat, lng].every((each, i) => typeof each === 'number' && Math.abs(each) <= 90 * (i + 1));
  return isPlace && Object.keys(others).length === 0 ? `(${lng},${lat})` : undefined;
}
