/** A table that exists beside what the schema wants of it, and what its rows allow. */

import type { TenantStorage } from '../database/citus.ts';
import type { Queryable } from '../database/contract.ts';
import { ident, raw, sql, text } from '../sql.ts';
import type { ActualConstraint, ActualTable } from './catalog.ts';
import type { Table } from './tables.ts';

export const quotedName = (name: string): string => ident(name).text;
export const sameColumns = (a: readonly string[], b: readonly string[]): boolean => a.join('\0') === b.join('\0');

/** A smaller table is scanned in some ten milliseconds, for which others may wait. Bytes. */
const LARGE_BYTES = 1 << 20;

export interface ChangeOptions {
  /** Whether statements can run outside of transactions. */
  readonly canRunApart: boolean;
  /** Bytes from which a table is large; for tests. */
  readonly largeFrom?: number | undefined;
  readonly layout?: TenantStorage;
}

export interface Change {
  readonly db: Queryable;
  readonly table: Table;
  /** `name` is still that of the database. */
  readonly actual: ActualTable;
  /** The name of another table in the database; undefined if there is none yet. */
  readonly storedTable: (name: string) => string | undefined;
  /** Whether the table of this name in the schema has the column now. */
  readonly hasStored?: (table: string, column: string) => boolean;
  readonly options: ChangeOptions;
}

export class ChangingTable {
  readonly table: Table;
  readonly actual: ActualTable;
  /** `ALTER TABLE` and its name, after it was renamed. */
  readonly alter: string;
  readonly storedTable: Change['storedTable'];
  readonly hasStored: NonNullable<Change['hasStored']>;
  readonly #db: Queryable;
  readonly #options: ChangeOptions;
  /** Column name in the schema → its name in the database, where they still differ. */
  readonly #renamed = new Map<string, string>();
  #place: Promise<Place> | undefined;

  constructor({ db, table, actual, storedTable, hasStored = () => true, options }: Change) {
    this.hasStored = hasStored;
    this.#db = db;
    this.#options = options;
    this.table = table;
    this.storedTable = storedTable;
    this.actual = actual;
    this.alter = `ALTER TABLE ${quotedName(table.name)}`;
    for (const { name, was } of table.columns) {
      if (was !== undefined && !actual.columns.has(name) && actual.columns.has(was)) this.#renamed.set(name, was);
    }
  }

  get renamed(): ReadonlyMap<string, string> {
    return this.#renamed;
  }

  hasColumns(columns: readonly string[]): boolean {
    return columns.every((column) => this.hasColumn(column));
  }

  /** The names of columns in the database. */
  storedAll(columns: readonly string[]): readonly string[] {
    return columns.map((column) => this.stored(column));
  }

  /** The name of a column in the database. */
  stored(column: string): string {
    return this.#renamed.get(column) ?? column;
  }

  hasColumn(column: string): boolean {
    return this.actual.columns.has(this.stored(column));
  }

  /** Holds the column to NOT NULL until that is declared. */
  requiredCheckOf(column: string): ActualConstraint | undefined {
    return this.actual.constraints.find(
      ({ kind, columns }) => kind === 'c' && sameColumns(columns, [this.stored(column)]),
    );
  }

  /** A cluster cannot rename constraints of distributed tables. */
  get canRename(): boolean {
    return this.#options.layout !== 'citus' || this.table.division === undefined;
  }

  /** Scanning it takes longer than others should wait. */
  async isLarge(): Promise<boolean> {
    return (await this.#placeOf()).bytes >= (this.#options.largeFrom ?? LARGE_BYTES);
  }

  /** Whether it is changed while it is used. PostgreSQL cannot do that to a partitioned table. */
  async isOnline(): Promise<boolean> {
    if (!this.#options.canRunApart) return false;
    return (await this.isLarge()) && !(await this.#placeOf()).isPartitioned;
  }

  /** Whether a row fulfils the condition, which names columns as the database has them. */
  exists(condition: string): Promise<boolean> {
    return this.#isTrue(`SELECT EXISTS (SELECT 1 FROM ${this.#from} WHERE ${condition})`);
  }

  hasDuplicates(columns: readonly string[]): Promise<boolean> {
    return this.#isTrue(`SELECT EXISTS (${this.duplicates(columns)})`);
  }

  duplicates(columns: readonly string[]): string {
    const names = columns.map((column) => quotedName(this.stored(column)));
    const list = names.join(', ');
    const present = names.map((name) => `${name} IS NOT NULL`).join(' AND ');
    return `SELECT ${list} FROM ${this.#from} WHERE ${present} GROUP BY ${list} HAVING count(*) > 1`;
  }

  /** The query that finds rows, for messages. */
  rowsWhere(condition: string): string {
    return `SELECT id FROM ${this.#from} WHERE ${condition}`;
  }

  get #from(): string {
    return quotedName(this.actual.name);
  }

  #placeOf(): Promise<Place> {
    this.#place ??= readPlace(this.#db, this.actual.name);
    return this.#place;
  }

  async #isTrue(query: string): Promise<boolean> {
    const [row] = await this.#db.rows(raw(query));
    return row?.[0] === 't';
  }
}

interface Place {
  readonly bytes: number;
  readonly isPartitioned: boolean;
}

async function readPlace(db: Queryable, table: string): Promise<Place> {
  const [row] = await db.rows(sql`
    SELECT pg_relation_size(oid), relkind
      FROM pg_class
     WHERE oid = to_regclass(quote_ident(${text(table)}))`);
  return { bytes: Number(row?.[0] ?? 0), isPartitioned: row?.[1] === 'p' };
}
