/**
 * The form of a field type in bodies, columns and descriptions. Each type has one file;
 * `policy/scalar-types.ts` holds the part that policies know.
 */
import type { ScalarKind, ScalarType } from '../../policy/scalar-types.ts';
import { rankNumerals, type Scalar } from '../../policy/values.ts';
import { quotedText, raw, type Sql, sql } from '../../sql.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The limits of a field, each already of the field's type. */
export interface Constraints {
  readonly min?: number | string;
  readonly max?: number | string;
  readonly enum?: readonly (string | number)[];
  /** A string is stored in lower case. */
  readonly lower?: boolean;
  /** A decimal has so many digits, and `scale` of them after the point. */
  readonly precision?: number | undefined;
  readonly scale?: number | undefined;
}

/**
 * Why a value is rejected. `code` is stable: `wrong_type`, `too_small`, `too_large`, `too_short`,
 * `too_long`, `too_precise`, `not_in_enum`, `unstorable`. `detail` is for people.
 */
interface Rejection {
  readonly code: string;
  readonly detail: string;
}
export type Read = { readonly value: Scalar; readonly error?: undefined } | Rejected;

/** How a column of a table that exists already becomes a field of this type. */
interface Adoption {
  /** Other types of columns, which `ALTER COLUMN … TYPE` turns into this one without loss. */
  readonly narrower: readonly string[];
  /** Further types of columns that a table of another owner may have: each of their values is one of the field. */
  readonly asItIs?: readonly string[];
  /** Other types of columns that a table of another owner may have, by the names of `stored_as`. */
  readonly storedAs?: Readonly<Record<string, StoredAs>>;
  /** A note of the draft on a column that fits as it is. */
  readonly note?: string;
  /** The column's DEFAULT as YAML; undefined: a schema cannot say it. */
  defaultOf(expression: string): string | undefined;
}

/** A type whose values are read as those of the field. */
export interface StoredAs {
  /** As `format_type` prints it, without a length. */
  readonly column: string;
  /** The suffix of the column where it is read; left out: none. */
  readonly readAs?: string;
}

/**
 * The type without the length of its strings or the decimals of its seconds: `character varying(80)` → `character varying`,
 * `timestamp(6) with time zone` → `timestamp with time zone`.
 */
export const withoutLength = (type: string): string => type.replace(/\(\d+\)(?=(?:\[\])?$| with)/, '');

/** Given if a column of text becomes one of this type, and back, where nothing is lost. */
export interface TextForm {
  /** The value as the text that `fromJson` reads back. */
  print(column: Sql): Sql;
  /** True of a text that `print` prints. */
  isPrinted(text: Sql, columnType: string): Sql;
  /** The value of such a text. */
  parse(text: Sql, columnType: string): Sql;
}

export interface FieldKind {
  readonly name: ScalarType | 'id';
  /** A line of the reference of schema files. */
  readonly doc: string;
  /** The type of the column, as PostgreSQL's `format_type` prints it. */
  readonly column: string;
  /** Given if the column holds values that the type does not: true of these. */
  isBeyond?(column: Sql): Sql;
  /** The type of the column of a field, where that depends on its limits. */
  columnOf?(constraints: Constraints): string;
  /** The type of a parameter that meets the column. */
  readonly sqlType: ScalarKind['sqlType'];
  /** The description of a valid value, after "expected". */
  readonly expected: string;
  /** The meaning of `min` and `max`: nothing, a length in code points, the number of elements, or a value of the type. */
  readonly bounds: 'none' | 'length' | 'elements' | 'value';
  readonly hasEnum: boolean;
  /** False: a value may be too long for the entry of an index. */
  readonly isIndexable?: false;
  /** A value of a JSON body other than null. */
  fromJson(value: unknown, constraints: Constraints): Read;
  /** Given if the text of a CSV cell is not that of a query parameter. → the JSON value. */
  fromText?(text: string): unknown;
  /** Text of a query parameter; `undefined`: it is not of the type. */
  fromQuery: ScalarKind['readText'];
  /** The text that PostgreSQL printed → JSON text. */
  toJson(cell: string): string;
  /** The same without its quotation marks, for JSON strings of which no character is escaped. */
  readonly unquotedJson?: (cell: string) => string;
  /** The text that PostgreSQL printed → the value that policies see. */
  fromCell(cell: string): Scalar;
  /** Given if `fromCell` takes texts of other types for values: true of those that are none. */
  isForeignCell?(cell: string): boolean;
  /** The value as SQL text, in a comparison with a column of this type or in its DEFAULT. */
  literal(value: Scalar): string;
  /** A constant default is also the column's DEFAULT, which PostgreSQL prints as it was written. */
  readonly hasColumnDefault: boolean;
  jsonSchema(constraints: Constraints): JsonSchema;
  typescript(constraints: Constraints): string;
  /** Values are days or instants, which files write in many forms. */
  readonly moment?: 'day' | 'instant';
  /** The way in which columns of existing tables are adopted. */
  readonly adoption: Adoption;
  readonly text?: TextForm;
  /** Given if a key of several columns may have it: the value as text, which `fromQuery` reads. */
  inKey?(column: Sql): Sql;
}

/** The code of the last digit. */
const NINE = 57;

/** PostgreSQL prints `NaN`, `Infinity` and years before the first one with a letter at their end. */
export const endsInLetter = (cell: string): boolean => cell.charCodeAt(cell.length - 1) > NINE;

/** The parts of a kind that policies decide, and those that most kinds share. */
export const asInPolicies = ({
  sqlType,
  readText,
}: ScalarKind): Pick<FieldKind, 'sqlType' | 'fromQuery' | 'literal' | 'hasColumnDefault'> => ({
  sqlType,
  fromQuery: readText,
  literal: (value) => (typeof value === 'string' ? quotedText(value) : String(value)),
  hasColumnDefault: true,
});

/** The text of a value that PostgreSQL prints canonically. */
export const cast = (value: Sql): Sql => sql`${value}::text`;

/** A type whose canonical text is the one that PostgreSQL prints and reads. */
export const asText = (isPrinted: TextForm['isPrinted']): TextForm => ({
  print: cast,
  isPrinted,
  parse: (text, columnType) => sql`${text}::${raw(columnType)}`,
});

/** Reads the JSON strings of a type whose values are canonical strings. */
export const readerOf =
  ({ readJson, grid }: ScalarKind, expected: string): FieldKind['fromJson'] =>
  (value, constraints) => {
    const canonical = typeof value === 'string' ? readJson(value) : undefined;
    if (typeof canonical !== 'string') return reject('wrong_type', `expected ${expected}`);
    const isOutside = grid === undefined ? outsideBounds : outsideNumerals;
    return isOutside(canonical, constraints) ?? { value: canonical };
  };

/** The same for plain numerals. */
export function outsideNumerals(value: string, { min, max }: Constraints): Rejected | undefined {
  if (min !== undefined && rankNumerals(value, String(min)) < 0) return reject('too_small', `expected ${min} or more`);
  if (max !== undefined && rankNumerals(value, String(max)) > 0) return reject('too_large', `expected ${max} or less`);
  return undefined;
}

export interface Rejected {
  readonly error: Rejection;
}
export const reject = (code: string, detail: string): Rejected => ({ error: { code, detail } });

export function outsideEnum(value: string | number, { enum: allowed }: Constraints): Rejected | undefined {
  if (allowed === undefined || allowed.includes(value)) return undefined;
  return reject('not_in_enum', `expected one of ${allowed.map((item) => JSON.stringify(item)).join(', ')}`);
}

/** Serves types whose `min` and `max` are values. Both sides compare with `<` (numbers, canonical datetimes). */
export function outsideBounds(value: string | number, { min, max }: Constraints): Rejected | undefined {
  if (min !== undefined && value < min) return reject('too_small', `expected ${min} or more`);
  if (max !== undefined && value > max) return reject('too_large', `expected ${max} or less`);
  return undefined;
}

export const enumSchema = ({ enum: allowed }: Constraints): JsonSchema =>
  allowed === undefined ? {} : { enum: allowed };

export const enumType = ({ enum: allowed }: Constraints, otherwise: string): string =>
  allowed === undefined ? otherwise : allowed.map((item) => JSON.stringify(item)).join(' | ');
