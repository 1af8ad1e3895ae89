/** The steps from the columns of an existing table to those of the schema. */
import { isFoldedCopy } from '../policy/fold.ts';
import { digitsOf } from '../schema/fields/decimal.ts';
import { FIELD_KINDS } from '../schema/fields/index.ts';
import { empty, ident, raw, type Sql, sql, tableIdent } from '../sql.ts';
import type { ActualColumn } from './catalog.ts';
import { requireOnline } from './online-ddl.ts';
import { COPYING_MARK, commentOn, type PagedRows, pagedRows } from './search-columns.ts';
import type { Step } from './step.ts';
import { sameColumns, type TableDiff } from './table-diff.ts';
import { type Column, columnTypeOf, fitsColumn, IDENTITY, stringLiteral } from './tables.ts';

export class ColumnChanges {
  readonly #t: TableDiff;
  readonly #alter: Sql;

  constructor(table: TableDiff) {
    this.#t = table;
    this.#alter = table.alter;
  }

  renames(): Step[] {
    return [...this.#t.renamed].map(([name, was]) => ({
      sql: sql`${this.#alter} RENAME COLUMN ${ident(was)} TO ${ident(name)}`,
    }));
  }

  async steps(): Promise<Step[]> {
    const steps: Step[] = [];
    for (const column of this.#t.table.columns) {
      const existing = this.#t.actual.columns.get(this.#t.stored(column.name));
      steps.push(...(await (existing ? this.#change(column, existing) : this.#add(column))));
    }
    // Copies are written last: a row may need a required value before it can be changed.
    const copies = steps.filter(({ foldedCopy, apart }) => foldedCopy !== undefined && apart !== undefined);
    return [...steps.filter((step) => !copies.includes(step)), ...copies, ...this.#drop()];
  }

  /** Steps after which an INSERT may leave out the columns that the schema does not have. */
  relaxations(): Step[] {
    const known = this.#known();
    return [...this.#t.actual.columns]
      .filter(([name, { required, hasDefault }]) => !known.has(name) && required && !hasDefault)
      .map(([name]) => ({ sql: sql`${this.#alter} ALTER COLUMN ${ident(name)} DROP NOT NULL` }));
  }

  #known(): ReadonlySet<string> {
    return new Set(this.#t.table.columns.map(({ name }) => this.#t.stored(name)));
  }

  #drop(): Step[] {
    const kept = this.#known();
    const gone = [...this.#t.actual.columns].filter(([name]) => !kept.has(name));
    return gone.map(([name, { type }]) => (isFoldedCopy(name) ? this.#dropCopy(name) : this.#dropColumn(name, type)));
  }

  /** The copy loses nothing, and would become stale without its writers. */
  #dropCopy(name: string): Step {
    return {
      sql: sql`${this.#alter} DROP COLUMN ${ident(name)}`,
      values: { table: this.#t.actual.name, column: name },
    };
  }

  #dropColumn(name: string, type: string): Step {
    const { table } = this.#t;
    const hint = this.#hintOfRename(name, type);
    return {
      sql: sql`${this.#alter} DROP COLUMN ${ident(name)}`,
      destructive: `the schema no longer has "${table.name}"."${name}"; its values would be lost${hint}`,
      values: { table: this.#t.actual.name, column: name },
      // If it were kept, it could not be renamed once the new column exists.
      isExtra: hint === '',
    };
  }

  #hintOfRename(gone: string, type: string): string {
    const { table, actual, renamed } = this.#t;
    const come = table.columns.find(
      ({ name, type: wanted, foldedFrom }) =>
        wanted === type && foldedFrom === undefined && !actual.columns.has(name) && !renamed.has(name),
    );
    if (come === undefined) return '';
    // The name of a relation's column is that of the relation with `_id`.
    const named = (column: string): string => (type === 'uuid' ? column.replace(/_id$/, '') : column);
    return `; if \`${named(come.name)}\` is its new name, give that \`was: ${named(gone)}\``;
  }

  async #add(column: Column): Promise<Step[]> {
    const value = valueOfExisting(column);
    const add = sql`${this.#alter} ADD COLUMN ${ident(column.name)} ${raw(columnTypeOf(column))}`;
    if (column.foldedFrom !== undefined) return this.#addFoldedCopy(add, column, column.foldedFrom);
    const alter = sql`${this.#alter} ALTER COLUMN ${ident(column.name)}`;
    if (!column.required) {
      // A statement of its own: existing rows get no value.
      return [{ sql: add }, ...this.#setDefault(column)];
    }
    if (value === undefined) return [await this.#addRequired(sql`${add} NOT NULL`, column)];
    const dropDefault = column.columnDefault === undefined ? [{ sql: sql`${alter} DROP DEFAULT` }] : [];
    return [{ sql: sql`${add} NOT NULL DEFAULT ${value}` }, ...dropDefault];
  }

  #setDefault({ name, columnDefault }: Column): Step[] {
    if (columnDefault === undefined) return [];
    return [{ sql: sql`${this.#alter} ALTER COLUMN ${ident(name)} SET DEFAULT ${raw(columnDefault)}` }];
  }

  /** The numbers go on after those that the rows have. */
  #setIdentity({ name, isIdentity }: Column): Step[] {
    if (!isIdentity) return [];
    const { name: table } = this.#t.table;
    const sequence = sql`pg_get_serial_sequence(${stringLiteral(ident(table).text)}, ${stringLiteral(name)})`;
    return [
      { sql: sql`${this.#alter} ALTER COLUMN ${ident(name)} ADD ${raw(IDENTITY)}` },
      { sql: sql`SELECT setval(${sequence}, max(${ident(name)})) FROM ${ident(table)} HAVING max(${ident(name)}) > 0` },
    ];
  }

  async #addFoldedCopy(add: Sql, { name: to }: Column, from: string): Promise<Step[]> {
    const { name: table } = this.#t.table;
    if (!(await this.#t.isOnline())) return [{ sql: add, foldedCopy: { ...this.#rows, from, to } }];
    return [{ sql: add }, { sql: commentOn(table, to, COPYING_MARK) }, this.#copyOnline(to, from)];
  }

  get #rows(): PagedRows {
    return pagedRows(this.#t.table);
  }

  /** The mark is removed when all rows have copies: until then, the next migration continues. */
  #copyOnline(to: string, from: string): Step {
    const { name: table } = this.#t.table;
    return {
      sql: commentOn(table, to, undefined),
      foldedCopy: { ...this.#rows, from, to },
      apart: { pagesOf: this.#rows },
    };
  }

  async #addRequired(statement: Sql, column: Column): Promise<Step> {
    if (!(await this.#t.exists(raw('true')))) return { sql: statement };
    return {
      sql: statement,
      destructive:
        `"${this.#t.table.name}" has rows, and the required "${column.name}" would have no value in them; ` +
        'give it a default, or add it as optional first',
      isImpossible: true,
    };
  }

  async #change(column: Column, existing: ActualColumn): Promise<Step[]> {
    const alter = sql`${this.#alter} ALTER COLUMN ${ident(column.name)}`;
    const steps: Step[] = [];
    const isOther = !fitsColumn(column, existing.type);
    // PostgreSQL does not convert the default.
    if (isOther && existing.hasDefault) steps.push({ sql: sql`${alter} DROP DEFAULT` });
    if (isOther) steps.push(await this.#changeType(column, existing));
    if (isOther || !existing.hasDefault) steps.push(...this.#setDefault(column));
    if (!isOther && !existing.hasDefault) steps.push(...this.#setIdentity(column));
    if (column.required && !existing.required) steps.push(...(await this.#require(column)));
    else steps.push(...this.#dropCheck(column));
    if (!column.required && existing.required) steps.push({ sql: sql`${alter} DROP NOT NULL` });
    if (column.foldedFrom !== undefined && existing.comment === COPYING_MARK)
      steps.push(this.#copyOnline(column.name, column.foldedFrom));
    return steps;
  }

  async #changeType(column: Column, existing: ActualColumn): Promise<Step> {
    const { table } = this.#t;
    const change = sql`${this.#alter} ALTER COLUMN ${ident(column.name)} TYPE ${raw(columnTypeOf(column))}`;
    const what = `"${table.name}"."${column.name}" would change from ${existing.type} to ${column.type}`;
    if (column.fits !== undefined || this.#t.table.primaryKey.includes(column.name))
      return {
        sql: change,
        destructive: `${what}; the ids of records keep their type: make a new collection`,
        isImpossible: true,
      };
    // A double represents every int within ±(2^53−1) exactly, but not every bigint.
    if (existing.type === 'bigint' && column.type === 'double precision' && !(await this.#exceedsDoubles(column))) {
      const rewrites = `${what}; that writes every row again, and blocks the table meanwhile`;
      return (await this.#t.isLarge()) ? { sql: change, rewrites } : { sql: change };
    }
    const lossless = await this.#losslessConversion(column, existing);
    if (lossless !== undefined) {
      const rewrites = `${what}; that writes every row again, and blocks the table meanwhile`;
      return { sql: sql`${change} USING ${lossless}`, ...((await this.#t.isLarge()) && { rewrites }) };
    }
    return {
      sql: sql`${change} USING ${ident(column.name)}::text::${raw(column.type)}`,
      destructive: `${what}; values that do not fit are changed, or make the migration fail`,
      values: { table: this.#t.actual.name, column: this.#t.stored(column.name) },
    };
  }

  #exceedsDoubles({ name }: Column): Promise<boolean> {
    const stored = ident(this.#t.stored(name));
    return this.#t.exists(sql`${stored} NOT BETWEEN -9007199254740991 AND 9007199254740991`);
  }

  /** From and to strings, where every value is the same afterwards. */
  async #losslessConversion(column: Column, existing: ActualColumn): Promise<Sql | undefined> {
    const stored = ident(this.#t.stored(column.name));
    const name = ident(column.name);
    if (widensDigits(existing.type, column.type)) return sql`${name}::${raw(column.type)}`;
    // The column may be that of an int, which an older version of the program would turn back at its next start.
    if (column.type === STRING_COLUMN && existing.type === INT_COLUMN) return undefined;
    if (column.type === STRING_COLUMN) return textFormOf(existing.type)?.print(name);
    const form = existing.type === STRING_COLUMN ? column.textForm : undefined;
    if (form === undefined) return undefined;
    const isOther = await this.#t.exists(sql`${stored} IS NOT NULL AND NOT ${form.isPrinted(stored, column.type)}`);
    return isOther ? undefined : form.parse(name, column.type);
  }

  async #require(column: Column): Promise<readonly Step[]> {
    const statement = sql`${this.#alter} ALTER COLUMN ${ident(column.name)} SET NOT NULL`;
    const isNull = sql`${ident(this.#t.stored(column.name))} IS NULL`;
    const why =
      `"${this.#t.table.name}"."${column.name}" becomes required, and some rows have no value; ` +
      `give them one first, or the field a default; ${this.#t.rowsWhere(isNull)} finds them`;
    const hasNulls = await this.#t.exists(isNull);
    const value = valueOfExisting(column);
    const isBlocked = hasNulls && (value === undefined || (await this.#isTaken(column, value)));
    if (isBlocked) return [{ sql: statement, destructive: why, isImpossible: true }];
    const table = tableIdent(this.#t.table.name);
    const name = ident(column.name);
    const fill =
      hasNulls && value !== undefined ? sql`UPDATE ${table} SET ${name} = ${value} WHERE ${name} IS NULL` : undefined;
    if (await this.#t.isOnline()) return requireOnline(this.#t, { column: column.name, fill, statement, why });
    return [...(fill === undefined ? [] : [{ sql: fill }]), { sql: statement }, ...this.#dropCheck(column)];
  }

  /** True if the column is unique and the value cannot be given to all rows without one. */
  async #isTaken({ name, type }: Column, value: Sql): Promise<boolean> {
    if (!this.#t.table.uniques.some((columns) => sameColumns(columns, [name]))) return false;
    const stored = this.#t.stored(name);
    const column = ident(stored);
    // A value of another type is converted first; the result is unknown.
    const isSame = this.#t.actual.columns.get(stored)?.type === type;
    const isValue = isSame ? sql`${column} = ${value} OR ` : empty;
    return this.#t.exists(sql`${isValue}${column} IS NULL OFFSET 1`);
  }

  /** Drops the CHECK of an interrupted migration, which has become superfluous. */
  #dropCheck({ name }: Column): Step[] {
    const check = this.#t.requiredCheckOf(name);
    return check === undefined ? [] : [{ sql: sql`${this.#alter} DROP CONSTRAINT ${ident(check.name)}` }];
  }
}

const STRING_COLUMN = FIELD_KINDS.string.column;
const INT_COLUMN = FIELD_KINDS.int.column;
const textFormOf = (columnType: string) =>
  Object.values(FIELD_KINDS).find(
    ({ column, text }) => column === columnType.replace(/\(\d+,\d+\)$/, '') && text !== undefined,
  )?.text;

/** From a decimal to one with as many digits on both sides of the point, or more. */
function widensDigits(from: string, to: string): boolean {
  const [narrow, wide] = [digitsOf(from), digitsOf(to)];
  if (narrow === undefined || wide === undefined) return false;
  return wide.scale >= narrow.scale && wide.precision - wide.scale >= narrow.precision - narrow.scale;
}

/** The value that existing rows without one get. */
function valueOfExisting({ columnDefault, fill }: Column): Sql | undefined {
  const value = columnDefault ?? fill;
  return value === undefined ? undefined : raw(value);
}
