/** What a field type is. One file a type holds all of it; nothing else in the program knows a type by name. */
import type { Scalar } from '../../policy/values.ts';
import type { SqlType } from '../../sql.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a field asks of its values, each already of the field's type. */
export interface Constraints {
  readonly min?: number | string;
  readonly max?: number | string;
  readonly enum?: readonly (string | number)[];
}

/** `code` is stable: `wrong_type`, `too_small`, `too_large`, `too_short`, `too_long`, `not_in_enum`, `unstorable`. `detail` is for people. */
export interface Refusal {
  readonly code: string;
  readonly detail: string;
}
export type Read = { readonly value: Scalar; readonly fault?: undefined } | { readonly fault: Refusal };

export interface FieldKind {
  readonly name: 'string' | 'bool' | 'int' | 'float' | 'datetime' | 'id';
  /** The type in CREATE TABLE. */
  readonly column: string;
  /** The type of a parameter that meets the column, and of a list of them. */
  readonly sqlType: SqlType;
  readonly listType: SqlType;
  /** What `min` and `max` are: nothing, a length in code points, or a value of the type. */
  readonly bounds: 'none' | 'length' | 'value';
  readonly hasEnum: boolean;
  /** A value of a JSON body. Null is the caller's matter. */
  fromJson(value: unknown, constraints: Constraints): Read;
  /** Text of a query parameter; `undefined` is not of the type. */
  fromQuery(text: string): Scalar | undefined;
  /** The text that PostgreSQL printed → JSON text. */
  toJson(cell: string): string;
  /** The text that PostgreSQL printed → the value that policies see. */
  fromCell(cell: string): Scalar;
  jsonSchema(constraints: Constraints): JsonSchema;
  typescript(constraints: Constraints): string;
}

export const refuse = (code: string, detail: string): { readonly fault: Refusal } => ({ fault: { code, detail } });

export function outsideEnum(
  value: string | number,
  { enum: allowed }: Constraints,
): { readonly fault: Refusal } | undefined {
  if (allowed === undefined || allowed.includes(value)) return undefined;
  return refuse('not_in_enum', `expected one of ${allowed.map((item) => JSON.stringify(item)).join(', ')}`);
}

/** For types whose `min` and `max` are values. Both sides compare with `<` (numbers, canonical datetimes). */
export function outsideBounds(
  value: string | number,
  { min, max }: Constraints,
): { readonly fault: Refusal } | undefined {
  if (min !== undefined && value < min) return refuse('too_small', `expected ${min} or more`);
  if (max !== undefined && value > max) return refuse('too_large', `expected ${max} or less`);
  return undefined;
}

export const enumSchema = ({ enum: allowed }: Constraints): JsonSchema =>
  allowed === undefined ? {} : { enum: allowed };

export const enumType = ({ enum: allowed }: Constraints, otherwise: string): string =>
  allowed === undefined ? otherwise : allowed.map((item) => JSON.stringify(item)).join(' | ');
