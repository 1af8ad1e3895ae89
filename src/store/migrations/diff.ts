/**
 * The statements that change the actual tables into the wanted ones, in order. Some lose data or
 * may fail on it.
 */

import { isFoldedCopy } from '../../policy/fold.ts';
import { ident, raw } from '../../sql.ts';
import type { Queryable } from '../database/contract.ts';
import type { ActualColumn, ActualConstraint, ActualTable } from './catalog.ts';
import { addForeignKey, addUnique, columnTypeOf, createIndex, createTable } from './ddl.ts';
import type { LosableValues } from './loss.ts';
import { ADD_TRIGRAMS, createTrigramIndex, type Filling, findTrigrams, type Trigrams } from './search-columns.ts';
import { type Column, type ForeignKey, nameOf, type Table } from './tables.ts';

export interface Step {
  readonly sql: string;
  /** Why this loses data, or may not succeed. */
  readonly destructive?: string;
  /** No rows that are there allow it; `destructive` has the query that finds them. */
  readonly isImpossible?: boolean;
  /** It drops what the schema does not know, and which harms nobody who serves the schema. */
  readonly isExtra?: boolean;
  /** What it drops or converts; not given where rows that exist stand against it. */
  readonly values?: LosableValues;
  /** Follows the statement. */
  readonly filling?: Filling;
}
interface PlanInput {
  readonly db: Queryable;
  readonly wanted: ReadonlyMap<string, Table>;
  readonly actual: ReadonlyMap<string, ActualTable>;
  /** Tables that an earlier schema created. Other tables are never dropped. */
  readonly owned: readonly string[];
  /** Whether what the schema does not know is kept where that harms nobody. */
  readonly keepsExtra?: boolean;
}

export async function planSteps(input: PlanInput): Promise<readonly Step[]> {
  const { db, wanted, actual, owned, keepsExtra = false } = input;
  const steps: Step[] = [];
  const after: Step[] = [];
  const search = new SearchIndexes(await findTrigrams(db));
  for (const table of wanted.values()) {
    const existing = actual.get(table.name);
    if (!existing) {
      steps.push(...createTable(table).map((sql) => ({ sql })));
      after.push(...table.foreignKeys.map((key) => ({ sql: addForeignKey(table.name, key) })));
      after.push(...table.indexes.map((columns) => ({ sql: createIndex(table.name, columns) })));
      search.add(table.name, table.searched);
      continue;
    }
    const diff = new TableDiff(db, table, existing);
    steps.push(...(await diff.steps()));
    if (keepsExtra) steps.push(...diff.relaxations());
    after.push(...(await diff.stepsAfter()));
    search.add(table.name, diff.unsearched);
  }
  const all = [...steps, ...dropTables(owned, wanted, actual), ...after, ...search.steps];
  return keepsExtra ? all.filter(({ isExtra }) => isExtra !== true) : all;
}

/** Those that are missing, where the database can have them. */
class SearchIndexes {
  readonly #trigrams: Trigrams;
  readonly #statements: string[] = [];

  constructor(trigrams: Trigrams) {
    this.#trigrams = trigrams;
  }

  add(table: string, columns: readonly string[]): void {
    if (this.#trigrams === 'none') return;
    const schema = this.#trigrams === 'addable' ? undefined : this.#trigrams.schema;
    this.#statements.push(...columns.map((column) => createTrigramIndex(table, column, schema)));
  }

  get steps(): readonly Step[] {
    const isAdded = this.#trigrams === 'addable' && this.#statements.length > 0;
    return [...(isAdded ? [ADD_TRIGRAMS] : []), ...this.#statements].map((sql) => ({ sql }));
  }
}

function dropTables(owned: readonly string[], wanted: PlanInput['wanted'], actual: PlanInput['actual']): Step[] {
  const gone = owned.filter((name) => !wanted.has(name) && actual.has(name));
  return gone.map((name) => ({
    sql: `DROP TABLE ${quotedName(name)} CASCADE`,
    destructive: `the schema no longer has the table "${name}"; its rows would be lost`,
    values: { table: name },
    isExtra: true,
  }));
}

const quotedName = (name: string): string => ident(name).text;
const sameColumns = (a: readonly string[], b: readonly string[]): boolean => a.join('\0') === b.join('\0');

/** One table that exists. */
class TableDiff {
  readonly #db: Queryable;
  readonly #table: Table;
  readonly #actual: ActualTable;
  readonly #alter: string;
  /** Column name in the schema → its name in the database, where they still differ. */
  readonly #renamed = new Map<string, string>();

  constructor(db: Queryable, table: Table, actual: ActualTable) {
    this.#db = db;
    this.#table = table;
    this.#actual = actual;
    this.#alter = `ALTER TABLE ${quotedName(table.name)}`;
    for (const { name, was } of table.columns) {
      if (was !== undefined && !actual.columns.has(name) && actual.columns.has(was)) this.#renamed.set(name, was);
    }
  }

  async steps(): Promise<Step[]> {
    const steps: Step[] = [...this.#renamed].map(([name, was]) => ({
      sql: `${this.#alter} RENAME COLUMN ${quotedName(was)} TO ${quotedName(name)}`,
    }));
    steps.push(...this.#dropConstraints(), ...this.#renameConstraints(), ...this.#renameIndexes());
    for (const column of this.#table.columns) {
      const existing = this.#actual.columns.get(this.#renamed.get(column.name) ?? column.name);
      steps.push(...(await (existing ? this.#changeColumn(column, existing) : this.#addColumn(column))));
    }
    return [...steps, ...this.#dropColumns()];
  }

  /** Steps that refer to columns which other tables may get only in `steps`. */
  async stepsAfter(): Promise<Step[]> {
    const steps: Step[] = [];
    for (const column of this.#table.uniques) if (!this.#hasUnique(column)) steps.push(await this.#addUnique(column));
    for (const key of this.#table.foreignKeys)
      if (!this.#hasForeignKey(key)) steps.push(await this.#addForeignKey(key));
    for (const columns of this.#table.indexes) {
      if (!this.#indexNamed(columns)) steps.push({ sql: createIndex(this.#table.name, columns) });
    }
    return steps;
  }

  /** The columns that lack their trigram index. */
  get unsearched(): readonly string[] {
    return this.#table.searched.filter((column) => this.#indexNamed([column]) === undefined);
  }

  #dropColumns(): Step[] {
    const kept = new Set(this.#table.columns.map(({ name }) => this.#renamed.get(name) ?? name));
    const gone = [...this.#actual.columns].filter(([name]) => !kept.has(name));
    return gone.map(([name, { type }]) => (isFoldedCopy(name) ? this.#dropCopy(name) : this.#dropColumn(name, type)));
  }

  /** Nothing is lost, and a copy that is no longer written would go stale. */
  #dropCopy(name: string): Step {
    return { sql: `${this.#alter} DROP COLUMN ${quotedName(name)}` };
  }

  #dropColumn(name: string, type: string): Step {
    const hint = this.#hintOfRename(name, type);
    return {
      sql: `${this.#alter} DROP COLUMN ${quotedName(name)}`,
      destructive: `the schema no longer has "${this.#table.name}"."${name}"; its values would be lost${hint}`,
      values: { table: this.#table.name, column: name },
      // Kept beside its new name, it could not become that any more.
      isExtra: hint === '',
    };
  }

  /** Steps after which rows can be inserted that do not know the columns which the schema does not have. */
  relaxations(): Step[] {
    const known = new Set(this.#table.columns.map(({ name }) => this.#renamed.get(name) ?? name));
    return [...this.#actual.columns]
      .filter(([name, { required, hasDefault }]) => !known.has(name) && required && !hasDefault)
      .map(([name]) => ({ sql: `${this.#alter} ALTER COLUMN ${quotedName(name)} DROP NOT NULL` }));
  }

  /** A column of the type that comes as another goes may be the same one under a new name. */
  #hintOfRename(gone: string, type: string): string {
    const come = this.#table.columns.find(
      ({ name, type: wanted, copies }) =>
        wanted === type && copies === undefined && !this.#actual.columns.has(name) && !this.#renamed.has(name),
    );
    if (come === undefined) return '';
    // The column of a relation is named after it.
    const named = (column: string): string => (type === 'uuid' ? column.replace(/_id$/, '') : column);
    return `; if \`${named(come.name)}\` is its new name, give that \`was: ${named(gone)}\``;
  }

  async #addColumn(column: Column): Promise<Step[]> {
    const value = column.standing ?? column.fill;
    const add = `${this.#alter} ADD COLUMN ${quotedName(column.name)} ${columnTypeOf(column)}`;
    const { name, copies } = column;
    if (copies !== undefined) return [{ sql: add, filling: { table: this.#table.name, column: copies, copy: name } }];
    if (!column.required) return [{ sql: add }];
    if (value === undefined) return [await this.#addRequired(`${add} NOT NULL`, column)];
    const steps = [{ sql: `${add} NOT NULL DEFAULT ${value}` }];
    if (column.standing === undefined)
      steps.push({ sql: `${this.#alter} ALTER COLUMN ${quotedName(column.name)} DROP DEFAULT` });
    return steps;
  }

  async #addRequired(statement: string, column: Column): Promise<Step> {
    if (!(await this.#exists('true'))) return { sql: statement };
    return {
      sql: statement,
      destructive:
        `"${this.#table.name}" has rows, and the required "${column.name}" would have no value in them; ` +
        'give it a default, or add it as optional first',
      isImpossible: true,
    };
  }

  async #changeColumn(column: Column, existing: ActualColumn): Promise<Step[]> {
    const alter = `${this.#alter} ALTER COLUMN ${quotedName(column.name)}`;
    const steps: Step[] = [];
    if (existing.type !== column.type) steps.push(this.#changeType(column, existing));
    if (column.standing !== undefined && !existing.hasDefault)
      steps.push({ sql: `${alter} SET DEFAULT ${column.standing}` });
    if (column.required && !existing.required) steps.push(...(await this.#require(column)));
    if (!column.required && existing.required) steps.push({ sql: `${alter} DROP NOT NULL` });
    return steps;
  }

  #changeType(column: Column, existing: ActualColumn): Step {
    const change = `${this.#alter} ALTER COLUMN ${quotedName(column.name)} TYPE ${columnTypeOf(column)}`;
    // A double represents every int within ±(2^53−1) exactly.
    if (existing.type === 'bigint' && column.type === 'double precision') return { sql: change };
    return {
      sql: `${change} USING ${quotedName(column.name)}::text::${column.type}`,
      destructive:
        `"${this.#table.name}"."${column.name}" would change from ${existing.type} to ${column.type}; ` +
        'values that do not fit are changed, or make the migration fail',
      values: { table: this.#table.name, column: this.#renamed.get(column.name) ?? column.name },
    };
  }

  async #require(column: Column): Promise<readonly Step[]> {
    const statement = `${this.#alter} ALTER COLUMN ${quotedName(column.name)} SET NOT NULL`;
    const stored = this.#renamed.get(column.name) ?? column.name;
    if (!(await this.#exists(`${quotedName(stored)} IS NULL`))) return [{ sql: statement }];
    const table = quotedName(this.#table.name);
    const value = column.standing ?? column.fill;
    if (value !== undefined) {
      const name = quotedName(column.name);
      return [{ sql: `UPDATE ${table} SET ${name} = ${value} WHERE ${name} IS NULL` }, { sql: statement }];
    }
    return [
      {
        sql: statement,
        destructive:
          `"${this.#table.name}"."${column.name}" becomes required, and some rows have no value; ` +
          `give them one first, or the field a default; SELECT id FROM ${table} WHERE ${quotedName(stored)} IS NULL finds them`,
        isImpossible: true,
      },
    ];
  }

  #dropConstraints(): Step[] {
    const wantedUniques = new Set(this.#table.uniques.map((column) => this.#renamed.get(column) ?? column));
    const gone = this.#actual.constraints.filter((constraint) => {
      if (constraint.kind === 'p') return false;
      const [column = '', ...more] = constraint.columns;
      if (constraint.kind === 'u') return more.length > 0 || !wantedUniques.has(column) || !constraint.deferred;
      return !this.#table.foreignKeys.some((key) => this.#isKey(key, constraint));
    });
    return gone.map(({ name, kind, columns }) => {
      const sql = `${this.#alter} DROP CONSTRAINT ${quotedName(name)}`;
      // Not ours: no schema can declare it, so nothing would bring it back.
      if (columns.length === 1) return { sql };
      const what = `${kind === 'u' ? 'UNIQUE' : 'FOREIGN KEY'} (${columns.join(', ')})`;
      return {
        sql,
        destructive: `no schema can declare the constraint ${what} of "${this.#table.name}"; it would be lost`,
      };
    });
  }

  /** Follows a renamed column: a constraint error finds its field by the name of the constraint. */
  #renameConstraints(): Step[] {
    const uniques = this.#table.uniques.map((column) => ({
      constraint: this.#uniqueOf(column),
      to: nameOf(this.#table.name, [column], 'key'),
    }));
    const keys = this.#table.foreignKeys.map((key) => ({
      constraint: this.#actual.constraints.find((constraint) => this.#isKey(key, constraint)),
      to: nameOf(this.#table.name, [key.column], 'fkey'),
    }));
    return [...uniques, ...keys].flatMap(({ constraint, to }) => {
      if (constraint === undefined || constraint.name === to) return [];
      return [{ sql: `${this.#alter} RENAME CONSTRAINT ${quotedName(constraint.name)} TO ${quotedName(to)}` }];
    });
  }

  #renameIndexes(): Step[] {
    const searched = this.#table.searched.map((column) => [column]);
    return [...this.#table.indexes, ...searched].flatMap((columns) => {
      const name = this.#indexNamed(columns);
      const to = nameOf(this.#table.name, columns, 'idx');
      return name === undefined || name === to
        ? []
        : [{ sql: `ALTER INDEX ${quotedName(name)} RENAME TO ${quotedName(to)}` }];
    });
  }

  #isKey(key: ForeignKey, { kind, columns, table, onDelete }: ActualConstraint): boolean {
    const column = this.#renamed.get(key.column) ?? key.column;
    return kind === 'f' && sameColumns(columns, [column]) && table === key.table && onDelete === key.onDelete;
  }

  #hasUnique(column: string): boolean {
    return this.#uniqueOf(column) !== undefined;
  }

  #uniqueOf(column: string): ActualConstraint | undefined {
    const stored = this.#renamed.get(column) ?? column;
    return this.#actual.constraints.find(
      ({ kind, columns, deferred }) => kind === 'u' && deferred && sameColumns(columns, [stored]),
    );
  }

  #hasForeignKey(key: ForeignKey): boolean {
    return this.#actual.constraints.some((constraint) => this.#isKey(key, constraint));
  }

  #indexNamed(columns: readonly string[]): string | undefined {
    const stored = columns.map((column) => this.#renamed.get(column) ?? column);
    return this.#actual.indexes.find((index) => sameColumns(index.columns, stored))?.name;
  }

  async #addUnique(column: string): Promise<Step> {
    const statement = addUnique(this.#table.name, column);
    const stored = this.#renamed.get(column) ?? column;
    if (!this.#actual.columns.has(stored) || !(await this.#hasDuplicates(stored))) return { sql: statement };
    return {
      sql: statement,
      destructive:
        `"${this.#table.name}"."${column}" becomes unique, and some rows have equal values; change them first; ` +
        `${this.#duplicates(stored)} finds them`,
      isImpossible: true,
    };
  }

  async #addForeignKey(key: ForeignKey): Promise<Step> {
    const statement = addForeignKey(this.#table.name, key);
    const stored = this.#renamed.get(key.column) ?? key.column;
    const existing = this.#actual.constraints.find(
      ({ kind, columns }) => kind === 'f' && sameColumns(columns, [stored]),
    );
    if (!this.#actual.columns.has(stored) || existing?.table === key.table) return { sql: statement };
    if (!(await this.#exists(`${quotedName(stored)} IS NOT NULL`))) return { sql: statement };
    return {
      sql: statement,
      destructive:
        `"${this.#table.name}"."${key.column}" would reference "${key.table}", but already holds ids of other records; ` +
        `SELECT id FROM ${quotedName(this.#table.name)} WHERE ${quotedName(stored)} IS NOT NULL finds them`,
      isImpossible: true,
    };
  }

  #exists(condition: string): Promise<boolean> {
    return isTrue(this.#db, `SELECT EXISTS (SELECT 1 FROM ${quotedName(this.#table.name)} WHERE ${condition})`);
  }

  #hasDuplicates(column: string): Promise<boolean> {
    return isTrue(this.#db, `SELECT EXISTS (${this.#duplicates(column)})`);
  }

  #duplicates(column: string): string {
    const c = quotedName(column);
    return `SELECT ${c} FROM ${quotedName(this.#table.name)} WHERE ${c} IS NOT NULL GROUP BY ${c} HAVING count(*) > 1`;
  }
}

async function isTrue(db: Queryable, text: string): Promise<boolean> {
  const [row] = await db.rows(raw(text));
  return row?.[0] === 't';
}
