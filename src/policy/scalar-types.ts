/** The types of fields, as policies see them. The compiler knows a type only by its entry here. */
import type { ElementType, SqlType } from '../sql.ts';
import { listText } from './scalars/list-values.ts';
import {
  DECIMALS,
  INT64,
  type NumeralGrid,
  parseBool,
  parseBytes,
  parseDate,
  parseDatetime,
  parseDecimal,
  parseFloatText,
  parseInt53,
  parseInt64,
  parseKeyText,
  parseString,
  parseTime,
  parseUnrounded,
  parseUuid,
  readBytes,
  readDecimal,
  readFloat,
  readInt53,
  readPoint,
  readUnrounded,
  type Scalar,
} from './values.ts';

/** Every reader is strict and total: `undefined` if the value is not of the type. */
export interface ScalarKind {
  /** The word of messages, which is the schema's own. */
  readonly label: string;
  /** The type of a parameter that is compared with a column of this type. */
  readonly sqlType: SqlType;
  /** True if `<`, `<=`, `>` and `>=` compare it. */
  readonly ordered: boolean;
  /**
   * Given if it holds numbers: the integers within ±(2^53−1), or finite doubles. Numbers of both
   * kinds compare by value.
   */
  readonly numbers?: 'whole' | 'double';
  /** Given if its values are plain numerals as strings, which compare by value. */
  readonly grid?: NumeralGrid;
  /** Strings: compared by code point, with parts to look for. */
  readonly text?: true;
  /** Values are not compared as a whole, only tested for null. */
  readonly opaque?: true;
  /** False: the values have no order at all, not even that of a list. */
  readonly sorts?: false;
  /** A value is a condition by itself. */
  readonly truth?: true;
  /** `@now` is one of its values. */
  readonly instant?: true;
  /** `@today` is one of its values. */
  readonly day?: true;
  /** Text of a query parameter. */
  readText(text: string): Scalar | undefined;
  /** A value of a JSON body or of the caller's own record. `"5"` is not an int here. */
  readJson(value: unknown): Scalar | undefined;
  /** Given if a record has its values in another form than JSON. Takes both. */
  readStored?(value: unknown): Scalar | undefined;
  /** Given if policies write its literals as strings. */
  readonly literal?: LiteralForm;
  /** Given for lists: the type of their elements. A list is its canonical text, see `list-values.ts`. */
  readonly element?: ElementOfList;
}
/** The types that a list may be `of`. */
export const ELEMENT_TYPES = ['string', 'int', 'float', 'bool', 'date', 'datetime'] as const;
export type ElementOfList = (typeof ELEMENT_TYPES)[number];
/** The most elements of a list. */
export const MOST_ELEMENTS = 1000;

export interface LiteralForm {
  /** The code of the error for a string that cannot be read. */
  readonly code: string;
  readonly expected: string;
  /** The probable meaning of a malformed literal. */
  corrected?(text: string): string | undefined;
}

const readString = (read: (text: string) => Scalar | undefined) => (value: unknown) =>
  typeof value === 'string' ? read(value) : undefined;

const CLOSE_TO_DATETIME = /^(\d{4}-\d\d-\d\d)(?:[ Tt](\d\d:\d\d)(:\d\d(?:\.\d{1,6})?)?)? ?([Zz]|[+-]\d\d:\d\d)?$/;

function correctedDatetime(text: string): string | undefined {
  const parts = CLOSE_TO_DATETIME.exec(text);
  if (parts === null) return undefined;
  const [, day, minutes = '00:00', seconds = ':00', zone = 'Z'] = parts;
  return `${day}T${minutes}${seconds}${zone.toUpperCase()}`;
}

const CLOSE_TO_DATE = /^(\d{4})[-/.]?(\d\d?)[-/.]?(\d\d?)(?:[ Tt].*)?$/;

function correctedDate(text: string): string | undefined {
  const [, year, month = '', day = ''] = CLOSE_TO_DATE.exec(text) ?? [];
  return year && `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
}

const CLOSE_TO_TIME = /^(\d\d?):(\d\d)(:\d\d(?:\.\d{1,6})?)?Z?$/;

function correctedTime(text: string): string | undefined {
  const [, hours, minutes, seconds = ':00'] = CLOSE_TO_TIME.exec(text) ?? [];
  return hours && `${hours.padStart(2, '0')}:${minutes}${seconds}`;
}

const define = <Name extends string>(kinds: Readonly<Record<Name, ScalarKind>>): typeof kinds => kinds;

const SINGLE_KINDS = define({
  string: {
    label: 'string',
    sqlType: 'text',
    ordered: true,
    text: true,
    readText: parseString,
    readJson: readString(parseString),
  },
  bool: {
    label: 'bool',
    sqlType: 'bool',
    ordered: false,
    truth: true,
    readText: parseBool,
    readJson: (value) => (typeof value === 'boolean' ? value : undefined),
  },
  int: { label: 'int', sqlType: 'int8', ordered: true, numbers: 'whole', readText: parseInt53, readJson: readInt53 },
  float: {
    label: 'float',
    sqlType: 'float8',
    ordered: true,
    numbers: 'double',
    readText: parseFloatText,
    readJson: readFloat,
  },
  bigint: {
    label: 'bigint',
    sqlType: 'int8',
    ordered: true,
    grid: INT64,
    readText: parseInt64,
    readJson: (value) => readString(parseInt64)(value) ?? readInt53(value)?.toString(),
  },
  decimal: {
    label: 'decimal',
    sqlType: 'numeric',
    ordered: true,
    grid: DECIMALS,
    readText: parseDecimal,
    readJson: readDecimal,
  },
  datetime: {
    label: 'datetime',
    sqlType: 'timestamptz',
    ordered: true,
    instant: true,
    readText: parseDatetime,
    readJson: readString(parseDatetime),
    literal: { code: 'datetime_malformed', expected: '`2024-01-31T12:00:00Z`', corrected: correctedDatetime },
  },
  date: {
    label: 'date',
    sqlType: 'date',
    ordered: true,
    day: true,
    readText: parseDate,
    readJson: readString(parseDate),
    literal: { code: 'date_malformed', expected: '`2024-01-31`', corrected: correctedDate },
  },
  time: {
    label: 'time',
    sqlType: 'time',
    ordered: true,
    readText: parseTime,
    readJson: readString(parseTime),
    literal: { code: 'time_malformed', expected: '`09:30:00`', corrected: correctedTime },
  },
  uuid: {
    label: 'uuid',
    sqlType: 'uuid',
    ordered: false,
    readText: parseUuid,
    readJson: readString(parseUuid),
    literal: { code: 'uuid_malformed', expected: '`01900000-0000-7000-8000-000000000000`' },
  },
  bytes: {
    label: 'bytes',
    sqlType: 'bytea',
    ordered: false,
    sorts: false,
    readText: parseBytes,
    readJson: readString(parseBytes),
    readStored: readBytes,
    literal: { code: 'bytes_malformed', expected: '`aGVsbG8=`, in base64' },
  },
});

/** Read for its parts alone: a value is its JSON text. */
const JSON_VALUE: ScalarKind = {
  label: 'json',
  sqlType: 'jsonb',
  ordered: false,
  sorts: false,
  opaque: true,
  readText: () => undefined,
  readJson: (value) => (value === null ? undefined : JSON.stringify(value)),
  readStored: (value) => (typeof value === 'string' ? value : undefined),
};

/** A place on the Earth: its value is the text of PostgreSQL, `(4.3,52.1)`, with the longitude first. */
const POINT: ScalarKind = {
  ...JSON_VALUE,
  label: 'point',
  sqlType: 'point',
  readJson: readPoint,
  readStored: (value) => (typeof value === 'string' ? value : readPoint(value)),
};

/** Its readers take whole lists: policies ask about elements, so no literal and no query parameter is a list of this kind. */
function listScalar(element: ElementOfList): ScalarKind {
  const { label, sqlType, readJson } = SINGLE_KINDS[element];
  const readList = (value: unknown): string | undefined => {
    if (!Array.isArray(value) || value.length > MOST_ELEMENTS) return undefined;
    const elements = value.map((each) => readJson(each));
    return elements.includes(undefined) ? undefined : listText(elements as readonly Scalar[]);
  };
  return {
    label: `list of ${label}`,
    sqlType: `${sqlType as ElementType}[]`,
    ordered: false,
    sorts: false,
    opaque: true,
    element,
    readText: () => undefined,
    readJson: readList,
    readStored: (value) => (typeof value === 'string' ? value : readList(value)),
  };
}

export const SCALARS = define({
  ...SINGLE_KINDS,
  json: JSON_VALUE,
  point: POINT,
  'string[]': listScalar('string'),
  'int[]': listScalar('int'),
  'float[]': listScalar('float'),
  'bool[]': listScalar('bool'),
  'date[]': listScalar('date'),
  'datetime[]': listScalar('datetime'),
});
export type ScalarType = keyof typeof SCALARS;
export type ListType = `${ElementOfList}[]`;

/** The kinds of keys. The ids of a collection are of one kind. */
export const KEYS = define({
  uuid: {
    label: 'id',
    sqlType: 'uuid',
    ordered: false,
    readText: parseUuid,
    readJson: readString(parseUuid),
    literal: { code: 'identifier_malformed', expected: 'a UUID' },
  },
  int: {
    label: 'id',
    sqlType: 'int8',
    ordered: false,
    numbers: 'whole',
    readText: parseInt53,
    readJson: readInt53,
  },
  string: {
    label: 'id',
    sqlType: 'text',
    ordered: false,
    readText: parseKeyText,
    readJson: readString(parseKeyText),
    literal: { code: 'identifier_malformed', expected: 'a string that is not empty' },
  },
});
export type KeyKind = keyof typeof KEYS;

/** An id of the collection. `key` is left out of a uuid. */
export interface IdType {
  readonly id: string;
  readonly key?: KeyKind;
}
export type ValueType = ScalarType | IdType;
export const isTo = (type: ValueType): type is IdType => typeof type === 'object';

export const scalarOf = (type: ValueType): ScalarKind => (isTo(type) ? KEYS[type.key ?? 'uuid'] : SCALARS[type]);

/** Floats that compare with ints by value. */
const BESIDE_INTS: ScalarKind = { ...SCALARS.float, readText: parseUnrounded, readJson: readUnrounded };
interface ReadOperand {
  readonly type: ValueType;
  readonly meetsInt?: true;
}
/** Reads the values of an operand of a request. */
export const readerOfOperand = ({ type, meetsInt }: ReadOperand): ScalarKind =>
  meetsInt ? BESIDE_INTS : scalarOf(type);

/** An id beside a string that may not be one is compared as text. */
export const areOfOneForm = (left: ValueType, right: ValueType): boolean =>
  isTo(left) === isTo(right) || scalarOf(left).sqlType === scalarOf(right).sqlType;
/** The type of the elements of a list; undefined for other types. */
export const elementOf = (type: ValueType): ElementOfList | undefined => scalarOf(type).element;
export const isOpaque = (type: ValueType): boolean => scalarOf(type).opaque === true;
export const isNumeric = (type: ValueType): boolean => scalarOf(type).numbers !== undefined;
export const isWhole = (type: ValueType): boolean => scalarOf(type).numbers === 'whole';
export const gridOf = (type: ValueType): NumeralGrid | undefined => scalarOf(type).grid;
export const isText = (type: ValueType): boolean => scalarOf(type).text === true;
export const isTruth = (type: ValueType): boolean => scalarOf(type).truth === true;
export const isInstant = (type: ValueType): boolean => scalarOf(type).instant === true;

export const isDay = (type: ValueType): boolean => scalarOf(type).day === true;

/** The words of a type in messages. */
export const describeType = (type: ValueType): string => (isTo(type) ? `id of \`${type.id}\`` : SCALARS[type].label);
