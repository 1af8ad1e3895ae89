/** The field types. A new one is its file and its line here. */
import type { ScalarType } from '../../policy/scalar-types.ts';
import { bigint } from './bigint.ts';
import { bool } from './bool.ts';
import { bytes } from './bytes.ts';
import { date } from './date.ts';
import { datetime } from './datetime.ts';
import { decimal } from './decimal.ts';
import { float } from './float.ts';
import { int } from './int.ts';
import { json } from './json-value.ts';
import type { Constraints, FieldKind } from './kind.ts';
import { LIST_KINDS } from './list-kinds.ts';
import { point } from './point.ts';
import { string } from './string.ts';
import { time } from './time.ts';
import { uuid } from './uuid.ts';

export const FIELD_KINDS: Readonly<Record<ScalarType, FieldKind>> = {
  string,
  bool,
  int,
  float,
  bigint,
  decimal,
  datetime,
  date,
  time,
  uuid,
  bytes,
  json,
  point,
  ...LIST_KINDS,
};
/** The type of the column of a field. */
export const columnTypeOfField = (field: Constraints & { readonly type: ScalarType }): string => {
  const kind = FIELD_KINDS[field.type];
  return kind.columnOf?.(field) ?? kind.column;
};
export const SCALAR_TYPES = Object.keys(FIELD_KINDS) as readonly ScalarType[];
/** The types of columns that a table of another owner may have instead. */
export const STORED_AS: readonly string[] = [
  ...new Set(Object.values(FIELD_KINDS).flatMap(({ adoption }) => Object.keys(adoption.storedAs ?? {}))),
];
export { keyKindIn, keyKindOf, newIdSchema, readNewId } from './id.ts';

export type { Constraints, FieldKind } from './kind.ts';
