/** The steps that bring the columns of a table that exists to those of the schema. */
import { isFoldedCopy } from '../policy/fold.ts';
import type { ActualColumn } from './catalog.ts';
import { type ChangingTable, quotedName, sameColumns } from './changing-table.ts';
import { columnTypeOf } from './ddl.ts';
import { requireOnline } from './online.ts';
import { FILLING_MARK, markOf } from './search-columns.ts';
import type { Step } from './step.ts';
import type { Column } from './tables.ts';

export class ColumnChanges {
  readonly #t: ChangingTable;
  readonly #alter: string;

  constructor(table: ChangingTable) {
    this.#t = table;
    this.#alter = table.alter;
  }

  renames(): Step[] {
    return [...this.#t.renamed].map(([name, was]) => ({
      sql: `${this.#alter} RENAME COLUMN ${quotedName(was)} TO ${quotedName(name)}`,
    }));
  }

  async steps(): Promise<Step[]> {
    const steps: Step[] = [];
    for (const column of this.#t.table.columns) {
      const existing = this.#t.actual.columns.get(this.#t.stored(column.name));
      steps.push(...(await (existing ? this.#change(column, existing) : this.#add(column))));
    }
    // Copies are written last: a row may have to get a required value before it can be changed.
    const copies = steps.filter(({ filling, apart }) => filling !== undefined && apart !== undefined);
    return [...steps.filter((step) => !copies.includes(step)), ...copies, ...this.#drop()];
  }

  /** Steps after which rows can be inserted that do not know the columns which the schema does not have. */
  relaxations(): Step[] {
    const known = this.#known();
    return [...this.#t.actual.columns]
      .filter(([name, { required, hasDefault }]) => !known.has(name) && required && !hasDefault)
      .map(([name]) => ({ sql: `${this.#alter} ALTER COLUMN ${quotedName(name)} DROP NOT NULL` }));
  }

  #known(): ReadonlySet<string> {
    return new Set(this.#t.table.columns.map(({ name }) => this.#t.stored(name)));
  }

  #drop(): Step[] {
    const kept = this.#known();
    const gone = [...this.#t.actual.columns].filter(([name]) => !kept.has(name));
    return gone.map(([name, { type }]) => (isFoldedCopy(name) ? this.#dropCopy(name) : this.#dropColumn(name, type)));
  }

  /** Nothing is lost, and a copy that is no longer written would go stale. */
  #dropCopy(name: string): Step {
    return { sql: `${this.#alter} DROP COLUMN ${quotedName(name)}` };
  }

  #dropColumn(name: string, type: string): Step {
    const { table } = this.#t;
    const hint = this.#hintOfRename(name, type);
    return {
      sql: `${this.#alter} DROP COLUMN ${quotedName(name)}`,
      destructive: `the schema no longer has "${table.name}"."${name}"; its values would be lost${hint}`,
      values: { table: this.#t.actual.name, column: name },
      // Kept beside its new name, it could not become that any more.
      isExtra: hint === '',
    };
  }

  #hintOfRename(gone: string, type: string): string {
    const { table, actual, renamed } = this.#t;
    const come = table.columns.find(
      ({ name, type: wanted, copies }) =>
        wanted === type && copies === undefined && !actual.columns.has(name) && !renamed.has(name),
    );
    if (come === undefined) return '';
    // The column of a relation is named after it.
    const named = (column: string): string => (type === 'uuid' ? column.replace(/_id$/, '') : column);
    return `; if \`${named(come.name)}\` is its new name, give that \`was: ${named(gone)}\``;
  }

  async #add(column: Column): Promise<Step[]> {
    const value = column.standing ?? column.fill;
    const add = `${this.#alter} ADD COLUMN ${quotedName(column.name)} ${columnTypeOf(column)}`;
    if (column.copies !== undefined) return this.#addCopies(add, column, column.copies);
    const alter = `${this.#alter} ALTER COLUMN ${quotedName(column.name)}`;
    if (!column.required) {
      // In a statement of its own, so that the rows that exist stay without a value.
      const standing = column.standing === undefined ? [] : [{ sql: `${alter} SET DEFAULT ${column.standing}` }];
      return [{ sql: add }, ...standing];
    }
    if (value === undefined) return [await this.#addRequired(`${add} NOT NULL`, column)];
    const steps = [{ sql: `${add} NOT NULL DEFAULT ${value}` }];
    if (column.standing === undefined) steps.push({ sql: `${alter} DROP DEFAULT` });
    return steps;
  }

  async #addCopies(add: string, { name: copy }: Column, column: string): Promise<Step[]> {
    const { name } = this.#t.table;
    if (!(await this.#t.isOnline())) return [{ sql: add, filling: { table: name, column, copy } }];
    return [{ sql: add }, { sql: markOf(name, copy, FILLING_MARK) }, this.#fillCopies(copy, column)];
  }

  /** The mark goes when all copies are there, so that a migration that was interrupted goes on. */
  #fillCopies(copy: string, column: string): Step {
    const { name } = this.#t.table;
    return { sql: markOf(name, copy, undefined), filling: { table: name, column, copy }, apart: { pagesOf: name } };
  }

  async #addRequired(statement: string, column: Column): Promise<Step> {
    if (!(await this.#t.exists('true'))) return { sql: statement };
    return {
      sql: statement,
      destructive:
        `"${this.#t.table.name}" has rows, and the required "${column.name}" would have no value in them; ` +
        'give it a default, or add it as optional first',
      isImpossible: true,
    };
  }

  async #change(column: Column, existing: ActualColumn): Promise<Step[]> {
    const alter = `${this.#alter} ALTER COLUMN ${quotedName(column.name)}`;
    const steps: Step[] = [];
    const isOther = existing.type !== column.type;
    // PostgreSQL would not convert it.
    if (isOther && existing.hasDefault) steps.push({ sql: `${alter} DROP DEFAULT` });
    if (isOther) steps.push(await this.#changeType(column, existing));
    if (column.standing !== undefined && (isOther || !existing.hasDefault))
      steps.push({ sql: `${alter} SET DEFAULT ${column.standing}` });
    if (column.required && !existing.required) steps.push(...(await this.#require(column)));
    else steps.push(...this.#dropCheck(column));
    if (!column.required && existing.required) steps.push({ sql: `${alter} DROP NOT NULL` });
    if (column.copies !== undefined && existing.comment === FILLING_MARK)
      steps.push(this.#fillCopies(column.name, column.copies));
    return steps;
  }

  async #changeType(column: Column, existing: ActualColumn): Promise<Step> {
    const { table } = this.#t;
    const change = `${this.#alter} ALTER COLUMN ${quotedName(column.name)} TYPE ${columnTypeOf(column)}`;
    const what = `"${table.name}"."${column.name}" would change from ${existing.type} to ${column.type}`;
    // A double represents every int within ±(2^53−1) exactly.
    if (existing.type === 'bigint' && column.type === 'double precision') {
      const rewrites = `${what}; that writes every row again, and nobody can use the table meanwhile`;
      return (await this.#t.isLarge()) ? { sql: change, rewrites } : { sql: change };
    }
    return {
      sql: `${change} USING ${quotedName(column.name)}::text::${column.type}`,
      destructive: `${what}; values that do not fit are changed, or make the migration fail`,
      values: { table: this.#t.actual.name, column: this.#t.stored(column.name) },
    };
  }

  async #require(column: Column): Promise<readonly Step[]> {
    const statement = `${this.#alter} ALTER COLUMN ${quotedName(column.name)} SET NOT NULL`;
    const isNull = `${quotedName(this.#t.stored(column.name))} IS NULL`;
    const why =
      `"${this.#t.table.name}"."${column.name}" becomes required, and some rows have no value; ` +
      `give them one first, or the field a default; ${this.#t.rowsWhere(isNull)} finds them`;
    const hasNulls = await this.#t.exists(isNull);
    const value = column.standing ?? column.fill;
    const isBlocked = hasNulls && (value === undefined || (await this.#isTaken(column, value)));
    if (isBlocked) return [{ sql: statement, destructive: why, isImpossible: true }];
    const table = quotedName(this.#t.table.name);
    const name = quotedName(column.name);
    const fill = hasNulls ? `UPDATE ${table} SET ${name} = ${value} WHERE ${name} IS NULL` : undefined;
    if (await this.#t.isOnline()) return requireOnline(this.#t, { column: column.name, fill, statement, why });
    return [...(fill === undefined ? [] : [{ sql: fill }]), { sql: statement }, ...this.#dropCheck(column)];
  }

  /** Not every row without a value can get this one. */
  async #isTaken({ name, type }: Column, value: string): Promise<boolean> {
    if (!this.#t.table.uniques.some((columns) => sameColumns(columns, [name]))) return false;
    const stored = this.#t.stored(name);
    const column = quotedName(stored);
    // A value of another type is converted first, and nothing is known of the result.
    const isSame = this.#t.actual.columns.get(stored)?.type === type;
    return this.#t.exists(`${isSame ? `${column} = ${value} OR ` : ''}${column} IS NULL OFFSET 1`);
  }

  /** Left by a migration that was interrupted, and needed no longer. */
  #dropCheck({ name }: Column): Step[] {
    const check = this.#t.requiredCheckOf(name);
    return check === undefined ? [] : [{ sql: `${this.#alter} DROP CONSTRAINT ${quotedName(check.name)}` }];
  }
}
