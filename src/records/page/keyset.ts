/**
 * Keyset pagination: the order of a query, and the condition that a row comes after a position in it. Nulls are last in both directions.
 * The first key bounds the condition by itself, so that an index on it begins where the page does.
 */
import type { Cells } from '../../database/contract.ts';
import { join, param, raw, type Sql, type SqlType, sql } from '../../sql.ts';

export interface Key {
  readonly sql: Sql;
  readonly type: SqlType;
  readonly nullable: boolean;
  readonly descending: boolean;
  /** A column of the row itself that an index is on. */
  readonly isIndexed: boolean;
}
/** A cell for each key, as PostgreSQL printed it. */
export type Position = readonly (string | null)[];

/** The rows with a value of the first key, and those without: each is one range of an index, as both together are not. */
interface Halves {
  readonly column: Sql;
  readonly present: Keyset;
  readonly absent: Keyset;
}

/** INVARIANT: the last key is an id, which no two rows share and no row lacks. */
export class Keyset {
  readonly #keys: readonly Key[];
  /** The keys before it are equal in all rows. */
  readonly #from: number;
  /** The only key, where the order is that of the ids. */
  readonly byId: Key | undefined;
  /** The columns of a SELECT before those of the record. The id alone is the first cell of every record. */
  readonly columns: readonly Sql[];
  /** Names the columns, so that a statement around the SELECT keeps the order. */
  readonly order: Sql;

  constructor(keys: readonly Key[], from = 0) {
    this.#keys = keys;
    this.#from = from;
    this.byId = keys.length === 1 ? keys[0] : undefined;
    this.columns = this.byId === undefined ? keys.map((key, i) => sql`${key.sql} AS ${raw(nameOf(i))}`) : [];
    const names = keys.map((key, i) => `${nameOf(i)}${directionOf(key)}`);
    this.order =
      this.byId === undefined ? raw(names.slice(from).join(', ')) : sql`${this.byId.sql}${raw(directionOf(this.byId))}`;
  }

  /** How many cells come before those of the record. */
  get width(): number {
    return this.columns.length;
  }

  /** The position of a row that begins with the columns. */
  positionOf(cells: Cells): Position {
    return cells.slice(0, this.#keys.length);
  }

  /** Only where the first key is indexed and can be null. */
  get halves(): Halves | undefined {
    const [first, ...rest] = this.#keys as [Key, ...Key[]];
    if (!first.isIndexed || !first.nullable) return undefined;
    const present = new Keyset([{ ...first, nullable: false }, ...rest]);
    return { column: first.sql, present, absent: new Keyset(this.#keys, 1) };
  }

  after(position: Position): Sql {
    const keys = this.#keys.slice(this.#from);
    const first = keys[0]!;
    const value = position[this.#from] ?? null;
    if (isOneRange(keys)) return this.#rowAfter(keys, position.slice(this.#from));
    if (first.nullable || value === null) return this.#after(position, this.#from);
    const bound = sql`${first.sql} ${raw(first.descending ? '<=' : '>=')} ${param(first.type, value)}`;
    return sql`${bound} AND ${this.#after(position, this.#from)}`;
  }

  /** `(a, id) > ($1, $2)`: one range of an index on both. */
  #rowAfter(keys: readonly Key[], position: Position): Sql {
    const columns = keys.map((key) => key.sql);
    const values = keys.map(({ type }, i) => sql`${param(type, position[i])}`);
    const beyond = raw(keys[0]!.descending ? '<' : '>');
    return sql`(${join(columns, ', ')}) ${beyond} (${join(values, ', ')})`;
  }

  #after(position: Position, i: number): Sql {
    const { sql: column, type, nullable, descending } = this.#keys[i]!;
    const value = position[i] ?? null;
    const isLast = i === this.#keys.length - 1;
    if (value === null) return isLast ? raw('FALSE') : sql`(${column} IS NULL AND ${this.#after(position, i + 1)})`;
    const beyond = sql`${column} ${raw(descending ? '<' : '>')} ${param(type, value)}`;
    const ways = [beyond];
    if (nullable) ways.push(sql`${column} IS NULL`);
    if (!isLast) ways.push(sql`(${column} = ${param(type, value)} AND ${this.#after(position, i + 1)})`);
    return ways.length === 1 ? beyond : sql`(${join(ways, ' OR ')})`;
  }
}

const isOneRange = (keys: readonly Key[]): boolean =>
  keys.every(({ nullable, descending }) => !nullable && descending === keys[0]!.descending);

/** INVARIANT: no column of a table has such a name. */
const nameOf = (i: number): string => `"_k${i}"`;

/** Ascending order has nulls last by itself. An index read backwards has them first, so they are named only where there are some. */
function directionOf({ descending, nullable }: Key): string {
  if (!descending) return '';
  return nullable ? ' DESC NULLS LAST' : ' DESC';
}
