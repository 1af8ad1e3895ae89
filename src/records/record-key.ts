/** The ids of the records of a collection in statements, by its key. */
import { BoundedMap } from '../bounded-map.ts';
import { memoizedBy } from '../memoized.ts';
import { type KeyKind, keyOf } from '../policy/types.ts';
import type { Scalar } from '../policy/values.ts';
import { type FieldKind, keyKindOf } from '../schema/fields/index.ts';
import { valuesInId, valuesOfKey } from '../schema/model/composite-key.ts';
import type { Collection, KeyPart, Schema } from '../schema/model/model.ts';
import { ident, join, type Param, Place, param, raw, type Sql, type SqlType, sql } from '../sql.ts';

export interface OrderedColumn {
  readonly column: string;
  /** The type of a parameter that it is compared with. */
  readonly type: SqlType;
}

const MOST_NAMED = 100;

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
  /** The column may have other types of strings. */
  readonly #isText: boolean;
  /** Given for a key of several columns. */
  readonly #parts: readonly KeyPart[] | undefined;
  /** Most statements name the same few rows. */
  readonly #named = new BoundedMap<string, Sql>(MOST_NAMED);

  constructor(collection: Pick<Collection, 'key'>) {
    const { kind, column, made } = keyOf(collection);
    this.#isText = made !== undefined;
    this.#parts = collection.key?.parts;
    this.#form = keyKindOf(collection);
    this.column = column;
    this.type = this.#form.sqlType;
    this.#kind = kind;
  }

  /** The id of the row named `alias`. */
  of(alias: string): Sql {
    let named = this.#named.get(alias);
    if (named === undefined) {
      named = ident(alias, this.column);
      this.#named.set(alias, named);
    }
    return named;
  }

  /** The id of the stored row named `alias`, which is not of several columns. */
  made(alias: string): Sql {
    return this.#isText ? sql`${this.of(alias)}::text` : this.of(alias);
  }

  /** The columns that hold it, of the row named `alias`. */
  columns(alias: string): readonly Sql[] {
    return this.ordered.map(({ column }) => ident(alias, column));
  }

  /** The condition that the row has the id in the SQL: the index of a key of several columns serves it. */
  isIn(alias: string, id: Sql): Sql {
    const values = this.#parts === undefined ? [id] : valuesInId(this.#parts, id);
    return allEqual(this.columns(alias), values);
  }

  /** The condition that the row has the id, which may be a place for one. */
  is(alias: string, id: unknown): Sql {
    const parts = this.#parts;
    if (parts === undefined) return sql`${this.of(alias)} = ${this.param(id)}`;
    const valueAt = (i: number) => (given: unknown) => valuesOfKey(parts, String(given))?.[i] ?? null;
    const tests = parts.map(({ column, kind }, i) => {
      const value = id instanceof Place ? new Place((request) => valueAt(i)(id.read(request))) : valueAt(i)(id);
      return sql`${ident(alias, column)} = ${param(kind.sqlType, value)}`;
    });
    return sql`(${join(tests, ' AND ')})`;
  }

  isAmong(alias: string, ids: readonly unknown[]): Sql {
    return this.#parts === undefined
      ? sql`${this.of(alias)} = ANY(${this.list(ids)})`
      : this.holdOneOf(this.columns(alias), ids);
  }

  /** The columns hold the values of one of the ids, of a key of several columns. Indexes of the columns serve it. */
  holdOneOf(columns: readonly Sql[], ids: readonly unknown[]): Sql {
    return sql`(${join(columns, ', ')}) IN (SELECT * FROM unnest(${join(this.#valuesOf(ids), ', ')}))`;
  }

  /** The ids as rows named `record`, whose columns are `id`, and of a key of several columns each `partOfRecord`. */
  asRecords(ids: readonly unknown[]): Sql {
    const values = this.#valuesOf(ids);
    const names = [raw('id'), ...values.map((_, i) => this.partOfRecord(i))];
    return sql`unnest(${join([sql`${this.list(ids)}`, ...values], ', ')}) AS record (${join(names, ', ')})`;
  }

  partOfRecord(place: number): Sql {
    return raw(`part${place}`);
  }

  /** A list for each column of a key of several. */
  #valuesOf(ids: readonly unknown[]): readonly Sql[] {
    const parts = this.#parts ?? [];
    const values = ids.map((id) => valuesOfKey(parts, String(id)));
    return parts.map(
      ({ kind }, i) =>
        sql`${param(
          `${kind.sqlType}[]` as SqlType,
          values.map((each) => each?.[i] ?? null),
        )}`,
    );
  }

  /** The columns in whose order the ids are. */
  get ordered(): readonly OrderedColumn[] {
    return this.#parts?.map(({ column, kind }) => ({ column, type: kind.sqlType })) ?? [this];
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

/** The condition that the values are the same, one by one. */
export const allEqual = (columns: readonly Sql[], values: readonly Sql[]): Sql =>
  join(
    columns.map((column, i) => sql`${column} = ${values[i]!}`),
    ' AND ',
  );

export const recordKeyOf = memoizedBy((collection: Pick<Collection, 'key'>) => new RecordKey(collection));

export const recordKeyIn = ({ collections }: Pick<Schema, 'collections'>, name: string): RecordKey =>
  recordKeyOf(collections.get(name)!);
