/** An existing table and the table that the schema wants, with questions to the existing rows. */
import type { Queryable } from '../database/contract.ts';
import { present } from '../invariant.ts';
import { ident, join, raw, regclassOf, type Sql, sql, tableIdent } from '../sql.ts';
import type { ActualConstraint, ActualTable } from './catalog.ts';
import { columnList, type Table } from './tables.ts';

export const sameColumns = (a: readonly string[], b: readonly string[]): boolean => a.join('\0') === b.join('\0');

/** Bytes. PostgreSQL scans a smaller table in some ten milliseconds, for which others may wait. */
export const LARGE_BYTES = 1 << 20;

export interface TableDiffOptions {
  /** Statements can run outside of transactions. */
  readonly canRunApart: boolean;
  /** The bytes from which a table is large; tests set it. */
  readonly largeFrom?: number | undefined;
  readonly isCluster?: boolean;
}

interface TableDiffInput {
  readonly db: Queryable;
  readonly table: Table;
  /** Its `name` is the one in the database. */
  readonly actual: ActualTable;
  /** The name of another table in the database; undefined if there is none yet. */
  readonly storedTable: (name: string) => string | undefined;
  /** The database has the column; the table has its name of the schema. */
  readonly hasStored: (table: string, column: string) => boolean;
  /** The name of the column in the database; the table has its name of the schema. */
  readonly storedColumn: (table: string, column: string) => string;
  /** A constraint of the database makes the column unique now. */
  readonly isStoredKey: (table: string, column: string) => boolean;
  /** The column that decides where the rows of a table are stored now. */
  readonly storedTenant: (table: string) => string | undefined;
  readonly options: TableDiffOptions;
}

export class TableDiff {
  readonly table: Table;
  readonly actual: ActualTable;
  /** `ALTER TABLE` and the new name. */
  readonly alter: Sql;
  readonly storedTable: TableDiffInput['storedTable'];
  readonly hasStored: TableDiffInput['hasStored'];
  readonly storedColumn: TableDiffInput['storedColumn'];
  readonly isStoredKey: TableDiffInput['isStoredKey'];
  readonly storedTenant: TableDiffInput['storedTenant'];
  readonly #db: Queryable;
  readonly #options: TableDiffOptions;
  /** The name of a column in the schema → its name in the database, if they differ. */
  readonly #renamed = new Map<string, string>();
  #size: Promise<TableSize> | undefined;

  constructor({ db, table, actual, storedTable, ...known }: TableDiffInput) {
    const { hasStored, storedColumn, isStoredKey, storedTenant, options } = known;
    this.hasStored = hasStored;
    this.storedColumn = storedColumn;
    this.isStoredKey = isStoredKey;
    this.storedTenant = storedTenant;
    this.#db = db;
    this.#options = options;
    this.table = table;
    this.storedTable = storedTable;
    this.actual = actual;
    this.alter = sql`ALTER TABLE ${tableIdent(table.name)}`;
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

  /** The CHECK that keeps the column NOT NULL until NOT NULL is declared. */
  requiredCheckOf(column: string): ActualConstraint | undefined {
    return this.actual.constraints.find(
      ({ kind, columns }) => kind === 'c' && sameColumns(columns, [this.stored(column)]),
    );
  }

  /** Citus cannot rename constraints of distributed tables. */
  get canRename(): boolean {
    return !this.#options.isCluster || this.table.tenantLayout === undefined;
  }

  get canRunApart(): boolean {
    return this.#options.canRunApart;
  }

  /** Nodes of a cluster have the rows. */
  get isOfCluster(): boolean {
    return this.#options.isCluster === true && this.actual.tenantLayout !== undefined;
  }

  /** A scan takes longer than others should wait. */
  async isLarge(): Promise<boolean> {
    return (await this.#readSize()).bytes >= (this.#options.largeFrom ?? LARGE_BYTES);
  }

  /** Online: changed while it is in use. PostgreSQL cannot do that with a partitioned table. */
  async isOnline(): Promise<boolean> {
    if (!this.#options.canRunApart) return false;
    return (await this.isLarge()) && !(await this.#readSize()).isPartitioned;
  }

  /** @param condition names columns as the database does */
  exists(condition: Sql): Promise<boolean> {
    return this.#isTrue(sql`SELECT EXISTS (SELECT 1 FROM ${this.#from} WHERE ${condition})`);
  }

  hasDuplicates(columns: readonly string[]): Promise<boolean> {
    return this.finds(this.duplicates(columns));
  }

  /** The query finds a row. */
  finds(query: Sql): Promise<boolean> {
    return this.#isTrue(sql`SELECT EXISTS (${query})`);
  }

  duplicates(columns: readonly string[]): Sql {
    const stored = this.storedAll(columns);
    const key = join(
      stored.map((name) => this.#comparable(name)),
      ', ',
    );
    const present = join(
      stored.map((name) => sql`${ident(name)} IS NOT NULL`),
      ' AND ',
    );
    return sql`SELECT ${key} FROM ${this.#from} WHERE ${present} GROUP BY ${key} HAVING count(*) > 1`;
  }

  /** A column that gets another type may have one without equality. */
  #comparable(stored: string): Sql {
    const { type } = this.actual.columns.get(stored) ?? {};
    return type === 'point' || type === 'json' ? sql`${ident(stored)}::text` : ident(stored);
  }

  /** The rows under the names of the schema, with the values that they get in columns which this migration adds. */
  rowsToBe(columns: readonly string[]): Sql {
    const { name } = this.table;
    const isAsStored = columns.every((column) => this.hasColumn(column) && this.stored(column) === column);
    if (isAsStored && this.actual.name === name) return this.#from;
    const values = columns.map((column) => sql`${this.#valueToBe(column)} AS ${ident(column)}`);
    return sql`(SELECT ${join(values, ', ')} FROM ${this.#from}) AS ${ident(name.slice(name.indexOf('.') + 1))}`;
  }

  #valueToBe(column: string): Sql {
    if (this.hasColumn(column)) return ident(this.stored(column));
    const added = this.table.columns.find(({ name }) => name === column);
    const { fill = 'NULL', type } = present(added, `the column ${column}`);
    return raw(`(${fill})::${type}`);
  }

  /** The query of messages, which finds rows. */
  rowsWhere(condition: Sql): string {
    return sql`SELECT ${columnList(this.storedAll(this.table.primaryKey.slice(-1)))} FROM ${this.#from} WHERE ${condition}`
      .text;
  }

  get #from(): Sql {
    return tableIdent(this.actual.name);
  }

  #readSize(): Promise<TableSize> {
    this.#size ??= readTableSize(this.#db, this.actual.name, this.isOfCluster);
    return this.#size;
  }

  async #isTrue(query: Sql): Promise<boolean> {
    const [row] = await this.#db.rows(query);
    return row?.[0] === 't';
  }
}

interface TableSize {
  readonly bytes: number;
  readonly isPartitioned: boolean;
}

async function readTableSize(db: Queryable, table: string, isOfCluster: boolean): Promise<TableSize> {
  // The table of the coordinator is empty.
  const size = raw(isOfCluster ? 'citus_relation_size' : 'pg_relation_size');
  const [row] = await db.rows(sql`
    SELECT ${size}(oid), relkind
      FROM pg_class
     WHERE oid = ${regclassOf(table)}`);
  return { bytes: Number(row?.[0] ?? 0), isPartitioned: row?.[1] === 'p' };
}
