/** The ids of the records of a collection in statements, by its key. */
import { memoizedBy } from '../memoized.ts';
import { type KeyKind, keyOf } from '../policy/types.ts';
import type { Scalar } from '../policy/values.ts';
import { type FieldKind, keyKindOf } from '../schema/fields/index.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { ident, type Param, param, type Sql, type SqlType, sql } from '../sql.ts';

const UNUSED: Readonly<Record<KeyKind, string>> = {
  uuid: '00000000-0000-0000-0000-000000000000',
  int: String(Number.MIN_SAFE_INTEGER),
  string: '',
};

export class RecordKey {
  readonly column: string;
  /** The type of an id in a parameter. */
  readonly type: SqlType;
  readonly #kind: KeyKind;
  readonly #form: FieldKind;

  constructor(collection: Pick<Collection, 'key'>) {
    const { kind, column } = keyOf(collection);
    this.#form = keyKindOf(collection);
    this.column = column;
    this.type = this.#form.sqlType;
    this.#kind = kind;
  }

  /** The id of the row named `alias`. */
  of(alias: string): Sql {
    return ident(alias, this.column);
  }

  /** The condition that the row has the id, which may be a place for one. */
  is(alias: string, id: unknown): Sql {
    return sql`${this.of(alias)} = ${this.param(id)}`;
  }

  isAmong(alias: string, ids: readonly unknown[]): Sql {
    return sql`${this.of(alias)} = ANY(${this.list(ids)})`;
  }

  param(id: unknown): Param {
    return param(this.type, id);
  }

  list(ids: readonly unknown[]): Param {
    return param(this.listType, ids);
  }

  get listType(): SqlType {
    return `${this.type}[]` as SqlType;
  }

  /** An id that no record has. */
  get unused(): string {
    return UNUSED[this.#kind];
  }

  /** The id as policies see it. */
  value(id: string): Scalar {
    return this.#form.fromCell(id);
  }
}

export const recordKeyOf = memoizedBy((collection: Pick<Collection, 'key'>) => new RecordKey(collection));

export const recordKeyIn = ({ collections }: Pick<Schema, 'collections'>, name: string): RecordKey =>
  recordKeyOf(collections.get(name)!);
