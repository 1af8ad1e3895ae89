/** The steps from the constraints and indexes of an existing table to those of the schema. */
import { constraintName } from '../schema/model/stored-names.ts';
import { empty, ident, identBeside, raw, type Sql, sql } from '../sql.ts';
import { type ActualConstraint, type ActualIndex, tenantColumnOf } from './catalog.ts';
import { addForeignKey, addUnique, createIndex } from './ddl.ts';
import {
  addForeignKeyNotValid,
  attachUnique,
  buildIndex,
  createIndexConcurrently,
  dropIndex,
  uniqueOnline,
  validate,
} from './online-ddl.ts';
import { createTrigramIndex } from './search-columns.ts';
import type { Step } from './step.ts';
import { sameColumns, type TableDiff } from './table-diff.ts';
import { type ForeignKey, foreignColumns, methodOfType, uniqueName } from './tables.ts';

interface RenamedConstraint {
  readonly constraint: ActualConstraint | undefined;
  readonly to: string;
  /** The statement that adds it again. */
  readonly add?: () => Sql;
}

const SUFFIX = { u: 'key', f: 'fkey', p: 'pkey', c: 'required' } as const;

export class ConstraintChanges {
  readonly #t: TableDiff;
  readonly #name: string;

  constructor(table: TableDiff) {
    this.#t = table;
    this.#name = table.table.name;
  }

  /** Steps before the columns change. */
  async stepsBefore(): Promise<Step[]> {
    return [
      ...this.#dropConstraints(await this.#attachesUniques()),
      ...this.#dropLeftovers(),
      ...this.#checkKeysAtOnce(),
      ...this.#renameConstraints(),
      ...this.#renameIndexes(),
    ];
  }

  /** A unique index that was built online becomes the constraint, which Citus refuses. */
  async #attachesUniques(): Promise<boolean> {
    return (await this.#t.isOnline()) && !this.#t.isOfCluster;
  }

  /** Foreign keys of other tables may need them. */
  async uniqueSteps(): Promise<Step[]> {
    const steps: Step[] = [];
    for (const columns of this.#t.table.uniques)
      if (this.#uniqueOf(columns) === undefined) steps.push(...(await this.#addUnique(columns)));
    return steps;
  }

  /** Steps that need columns of other tables, which may be added later than those of this one. */
  async stepsAfter(): Promise<Step[]> {
    const steps: Step[] = [];
    for (const key of this.#t.table.foreignKeys) steps.push(...(await this.#addForeignKey(key)));
    for (const columns of this.#t.table.indexes) {
      if (this.#indexOf(columns) !== undefined) continue;
      const create = (isOnline: boolean) => (isOnline ? createIndexConcurrently : createIndex)(this.#t.table, columns);
      steps.push(...(await this.#build(columns, create)));
    }
    return steps;
  }

  /** @param schema the schema of the extension pg_trgm */
  async searchSteps(schema: string | undefined): Promise<Step[]> {
    const steps: Step[] = [];
    for (const column of this.#t.table.searched) {
      if (this.#indexOf([column]) !== undefined) continue;
      const create = (isOnline: boolean) => createTrigramIndex(this.#name, column, { schema, isOnline });
      steps.push(...(await this.#build([column], create)));
    }
    return steps;
  }

  async #build(columns: readonly string[], create: (isOnline: boolean) => Sql): Promise<readonly Step[]> {
    const isOnline = await this.#t.isOnline();
    const left = this.#leftover(constraintName(this.#name, columns, 'idx'))?.name;
    return buildIndex(
      create(isOnline),
      left === undefined ? undefined : dropIndex(this.#name, left, isOnline),
      isOnline,
    );
  }

  #dropConstraints(isOnline: boolean): Step[] {
    const { uniques, foreignKeys } = this.#t.table;
    const replaced = uniques.flatMap((columns) => this.#replacedBy(columns));
    // Rows stay checked until the new constraint exists.
    const later = uniques.flatMap((columns) => (this.#isSwapped(columns, isOnline) ? this.#replacedBy(columns) : []));
    const gone = this.#t.actual.constraints.filter((constraint) => {
      if (later.includes(constraint)) return false;
      if (constraint.kind === 'u') return !this.#isWanted(constraint);
      return constraint.kind === 'f' && !foreignKeys.some((key) => this.#isKey(key, constraint));
    });
    return gone.map((constraint) => {
      const { name, kind, columns } = constraint;
      const drop = sql`${this.#t.alter} DROP CONSTRAINT ${ident(name)}`;
      // Nodes of a newer version may rely on it.
      const isExtra = kind === 'u' && !replaced.includes(constraint) && !this.#hasColumnsOfUnique(constraint);
      if (this.#isOurs(constraint)) {
        const needed = this.#whyNeeded(constraint);
        const impossible = needed === undefined ? {} : { destructive: needed, isImpossible: true };
        return { sql: drop, ...impossible, ...(isExtra && { isExtra }) };
      }
      // No schema can declare it, so no migration would restore it.
      const what = `${kind === 'u' ? 'UNIQUE' : 'FOREIGN KEY'} (${columns.join(', ')})`;
      return {
        sql: drop,
        destructive: `no schema can declare the constraint ${what} of "${this.#name}"; it would be lost`,
      };
    });
  }

  #isOurs({ name, kind, columns }: ActualConstraint): boolean {
    return columns.length === 1 || name === constraintName(this.#t.actual.name, columns.slice(-1), SUFFIX[kind]);
  }

  /** Why a constraint cannot be dropped. */
  #whyNeeded({ name, dropsOfUsers }: ActualConstraint): string | undefined {
    if (dropsOfUsers.length === 0) return undefined;
    return (
      `the constraint "${name}" of "${this.#name}" is not as the schema wants it, and foreign keys need it; ` +
      `drop those first: ${dropsOfUsers.join('; ')}`
    );
  }

  /** Drops indexes of an interrupted migration to a schema that wanted more than this one, and those that a new type cannot have. */
  #dropLeftovers(): Step[] {
    const { actual, table } = this.#t;
    const missing = table.uniques.filter((columns) => this.#uniqueOf(columns) === undefined);
    const building = new Set(missing.map((columns) => uniqueName(this.#name, columns, 'newkey')));
    const uniques = new Set(table.uniques.map((columns) => uniqueName(this.#name, columns)));
    const isOurs = ({ name, columns, isUnique }: ActualIndex): boolean =>
      name === (isUnique ? uniqueName(actual.name, columns) : constraintName(actual.name, columns, 'idx'));
    const isGone = (index: ActualIndex): boolean => {
      const { name, columns, isUnique, isValid } = index;
      if (this.#isUnfit(index)) return true;
      // No constraint uses it yet.
      if (isUnique && name === uniqueName(actual.name, columns, 'newkey')) return !building.has(name);
      return !isValid && isOurs(index) && !uniques.has(name) && !this.#wantsIndex(name);
    };
    return actual.indexes.filter(isGone).map(({ name }) => ({ sql: dropIndex(this.#name, name, false) }));
  }

  #wantsIndex(name: string): boolean {
    const { indexes, searched } = this.#t.table;
    return [...indexes, ...searched.map((column) => [column])].some(
      (columns) => constraintName(this.#name, columns, 'idx') === name,
    );
  }

  /** Deferred foreign keys of an adopted table: a write would be answered before it fails. */
  #checkKeysAtOnce(): Step[] {
    const { table, actual, alter } = this.#t;
    const waiting = actual.constraints.filter(
      (constraint) => !constraint.isPlain && table.foreignKeys.some((key) => this.#isKey(key, constraint)),
    );
    return waiting.map(({ name }) => ({ sql: sql`${alter} ALTER CONSTRAINT ${ident(name)} NOT DEFERRABLE` }));
  }

  /** Follows renamed columns: a constraint error finds its field by the name of the constraint. */
  #renameConstraints(): Step[] {
    const { table, actual, alter } = this.#t;
    const uniques = table.uniques.map((columns) => ({
      constraint: this.#uniqueOf(columns),
      to: uniqueName(this.#name, columns),
      add: () => addUnique(this.#name, columns),
    }));
    const keys = table.foreignKeys.map((key) => ({
      constraint: actual.constraints.find((constraint) => this.#isKey(key, constraint)),
      to: constraintName(this.#name, [key.column], 'fkey'),
      add: () => addForeignKey(this.#name, key),
    }));
    const renamed = this.#t.canRename ? this.#renamedKey() : [];
    return [...uniques, ...keys, ...renamed].flatMap(({ constraint, to, add }) => {
      if (constraint === undefined || constraint.name === to) return [];
      if (!this.#t.canRename && add !== undefined)
        return [{ sql: sql`${alter} DROP CONSTRAINT ${ident(constraint.name)}` }, { sql: add() }];
      return [{ sql: sql`${alter} RENAME CONSTRAINT ${ident(constraint.name)} TO ${ident(to)}` }];
    });
  }

  /** Another table may get the former name, and with it the name of this primary key. */
  #renamedKey(): readonly RenamedConstraint[] {
    const { actual } = this.#t;
    if (actual.name === this.#name) return [];
    const former = constraintName(actual.name, [], 'pkey');
    const constraint = actual.constraints.find(({ kind, name }) => kind === 'p' && name === former);
    return [{ constraint, to: constraintName(this.#name, [], 'pkey') }];
  }

  #renameIndexes(): Step[] {
    const searched = this.#t.table.searched.map((column) => [column]);
    return [...this.#t.table.indexes, ...searched].flatMap((columns) => {
      const name = this.#indexOf(columns)?.name;
      const to = constraintName(this.#name, columns, 'idx');
      return name === undefined || name === to
        ? []
        : [{ sql: sql`ALTER INDEX ${identBeside(this.#name, name)} RENAME TO ${ident(to)}` }];
    });
  }

  #isKey(key: ForeignKey, actual: ActualConstraint): boolean {
    const { kind, columns, table, onDelete } = actual;
    const isOfColumn = kind === 'f' && sameColumns(columns, this.#t.storedAll(foreignColumns(key).own));
    return isOfColumn && table === key.table && onDelete === key.onDelete && this.#leadsAlike(key, actual);
  }

  /** A key of ids may follow updates in an adopted table, too. */
  #leadsAlike({ key, table, isOfValue }: ForeignKey, { referenced, followsUpdates }: ActualConstraint): boolean {
    const isThere = referenced === this.#t.storedColumn(table, key);
    return isOfValue ? followsUpdates === true && isThere : followsUpdates !== true || isThere;
  }

  #uniqueOf(unique: readonly string[]): ActualConstraint | undefined {
    const stored = this.#t.storedAll(unique);
    return this.#t.actual.constraints.find(
      ({ kind, columns, isPlain }) => kind === 'u' && isPlain && sameColumns(columns, stored),
    );
  }

  #hasColumnsOfUnique({ columns }: ActualConstraint): boolean {
    return this.#t.table.uniques.some((unique) => sameColumns(this.#t.storedAll(unique), columns));
  }

  #isWanted(constraint: ActualConstraint): boolean {
    return constraint.isPlain && this.#hasColumnsOfUnique(constraint);
  }

  /**
   * The unique constraints that this one replaces, if it does not exist yet: constraints of its field
   * that the schema does not want, or with its name.
   */
  #replacedBy(unique: readonly string[]): readonly ActualConstraint[] {
    if (this.#uniqueOf(unique) !== undefined) return [];
    const { actual, table } = this.#t;
    return actual.constraints.filter((constraint) => {
      if (constraint.kind !== 'u' || this.#isWanted(constraint)) return false;
      const places = table.uniques.filter((columns) => this.#standsFor(constraint, columns));
      // A constraint on new columns is added in the transaction, so its name must be free by then.
      const first = places.find((columns) => !this.#t.hasColumns(columns)) ?? places[0];
      return first === unique;
    });
  }

  #standsFor(constraint: ActualConstraint, unique: readonly string[]): boolean {
    if (this.#uniqueOf(unique) !== undefined) return false;
    const { name, columns } = constraint;
    const stored = this.#t.storedAll(unique);
    if (sameColumns(columns, stored)) return true;
    return this.#isOurs(constraint) && (name === uniqueName(this.#name, unique) || columns.at(-1) === stored.at(-1));
  }

  /** True if a single statement drops the former constraint and adds the new one. */
  #isSwapped(unique: readonly string[], isOnline: boolean): boolean {
    return isOnline && this.#t.hasColumns(unique);
  }

  #indexOf(columns: readonly string[]): ActualIndex | undefined {
    const stored = this.#t.storedAll(columns);
    return this.#t.actual.indexes.find(
      (index) => index.isValid && !index.isUnique && sameColumns(index.columns, stored) && !this.#isUnfit(index),
    );
  }

  /** The new type of a column is indexed by another method. */
  #isUnfit({ columns, isUnique }: ActualIndex): boolean {
    const { actual, table } = this.#t;
    if (isUnique) return false;
    return table.columns.some(({ name, type }) => {
      const stored = this.#t.stored(name);
      if (!columns.includes(stored)) return false;
      return methodOfType(type) !== methodOfType(actual.columns.get(stored)?.type ?? '');
    });
  }

  /** The invalid index of an interrupted migration. */
  #leftover(name: string): ActualIndex | undefined {
    return this.#t.actual.indexes.find((index) => index.name === name && !index.isValid);
  }

  async #addUnique(columns: readonly string[]): Promise<readonly Step[]> {
    const statement = addUnique(this.#name, columns);
    const column = columns.at(-1)!;
    if (!this.#t.hasColumns(columns)) return [await this.#addUniqueToNew(statement, columns)];
    const within =
      columns.length === 1
        ? ''
        : ` within ${columns
            .slice(0, -1)
            .map((name) => ident(name).text)
            .join(', ')}`;
    const why =
      `"${this.#name}"."${column}" becomes unique${within}, and some rows have equal values; change them first; ` +
      `${this.#t.duplicates(columns).text} finds them`;
    const isOnline = await this.#attachesUniques();
    // In the transaction, they are dropped first.
    const swapped = this.#isSwapped(columns, isOnline) ? this.#replacedBy(columns) : [];
    const needed = swapped.flatMap((constraint) => this.#whyNeeded(constraint) ?? []);
    if (needed.length > 0) return [{ sql: statement, destructive: needed.join('; '), isImpossible: true }];
    const replaces = swapped.map(({ name }) => name);
    const names = [uniqueName(this.#name, columns), uniqueName(this.#name, columns, 'newkey')] as const;
    const built = this.#builtUnique(columns, names);
    const left = this.#t.actual.indexes.filter(
      ({ name, isValid }) => name !== built && (name === names[1] || (name === names[0] && !isValid)),
    );
    const drops = left.map(({ name }) => ({ sql: dropIndex(this.#name, name, false) }));
    if (built !== undefined) return [...drops, { sql: attachUnique(this.#name, columns, { index: built, replaces }) }];
    if (await this.#t.hasDuplicates(columns)) return [{ sql: statement, destructive: why, isImpossible: true }];
    const index = names[replaces.length === 0 ? 0 : 1];
    if (isOnline) return uniqueOnline(this.#t, { columns, why, left, index, replaces });
    const isShut = this.#t.isOfCluster && (await this.#t.isLarge());
    const rewrites =
      `"${this.#name}"."${column}" becomes unique${within}, and a cluster builds that while all writers of the table wait; ` +
      'stop the service first, or expect them to wait';
    return [...drops, { sql: statement, ...(isShut && { rewrites }) }];
  }

  /** The complete index of an interrupted migration, which only has to become the constraint. */
  #builtUnique(unique: readonly string[], names: readonly string[]): string | undefined {
    const stored = this.#t.storedAll(unique);
    const built = this.#t.actual.indexes.filter(
      ({ columns, isUnique, isValid }) => isUnique && isValid && sameColumns(columns, stored),
    );
    return names.find((name) => built.some((index) => index.name === name));
  }

  /** Existing rows get the default of a new column that is required. */
  async #addUniqueToNew(statement: Sql, unique: readonly string[]): Promise<Step> {
    const { columns, name } = this.#t.table;
    const isFilled = unique.every((column) => columns.some((one) => one.name === column && one.required));
    if (!isFilled || !(await this.#t.exists(raw('true OFFSET 1')))) return { sql: statement };
    const made = unique.find((column) => !this.#t.hasColumn(column));
    return {
      sql: statement,
      destructive:
        `"${name}" has rows, which would all have the default of the new "${made}", and that is unique; ` +
        'add it as optional first, or without `unique`',
      isImpossible: true,
    };
  }

  async #addForeignKey(key: ForeignKey): Promise<readonly Step[]> {
    const { actual } = this.#t;
    const existing = actual.constraints.find((constraint) => this.#isKey(key, constraint));
    if (existing?.isValidated === true) return [];
    const add = addForeignKey(this.#name, key);
    const { own } = foreignColumns(key);
    const apart = this.#waitsForKey(key) ? ({ apart: 'transaction' } as const) : {};
    if (!this.#t.hasColumns(own)) return [{ sql: add, ...apart }];
    const isHeld = actual.constraints.some(({ kind, columns, table, referenced, isValidated }) => {
      const isSame = kind === 'f' && table === key.table && sameColumns(columns, this.#t.storedAll(own));
      return isSame && isValidated && referenced === this.#t.storedColumn(table, key.key);
    });
    const orphans = this.#orphans(key);
    const why =
      `"${this.#name}"."${key.column}" would reference "${key.table}", but already holds ids of other records; ` +
      `${this.#t.rowsWhere(orphans)} finds them`;
    if (!isHeld && (await this.#t.exists(orphans))) return [{ sql: add, destructive: why, isImpossible: true }];
    const name = constraintName(this.#name, [key.column], 'fkey');
    if (existing !== undefined) return [validate(this.#t, name, why)];
    if (!(await this.#t.isOnline())) return [{ sql: add, ...apart }];
    return [{ sql: addForeignKeyNotValid(this.#name, key), ...apart }, validate(this.#t, name, why)];
  }

  /** This migration makes the values there unique, and may do so while the table is in use. */
  #waitsForKey({ key, table, isOfValue }: ForeignKey): boolean {
    if (!this.#t.canRunApart || !isOfValue) return false;
    return this.#t.storedTable(table) !== undefined && !this.#t.isStoredKey(table, this.#t.storedColumn(table, key));
  }

  /** The tenants of two tables that are divided by them until this migration: Citus joins their rows by nothing else. */
  #storedTenant(table: string): ForeignKey['tenant'] {
    const column = tenantColumnOf(this.#t.actual);
    const references = this.#t.storedTenant(table);
    return column === undefined || references === undefined ? undefined : { column, references };
  }

  /** The condition of rows whose target does not exist. */
  #orphans({ column, table, key, isOfValue, tenant = this.#storedTenant(table) }: ForeignKey): Sql {
    const there = isOfValue ? this.#t.storedColumn(table, key) : key;
    if (isOfValue && !this.#t.hasStored(table, there)) return raw('false');
    const own = (name: string): Sql => ident(this.#t.actual.name, this.#t.stored(name));
    const stored = own(column);
    const target = this.#t.storedTable(table);
    if (target === undefined) return sql`${stored} IS NOT NULL`;
    const isNew = tenant === undefined || !this.#t.hasStored(table, tenant.references);
    const isOfTenant = isNew ? empty : sql` AND target.${ident(tenant.references)} = ${own(tenant.column)}`;
    const matching = sql`SELECT 1 FROM ${ident(target)} AS target WHERE target.${ident(there)} = ${stored}${isOfTenant}`;
    return sql`${stored} IS NOT NULL AND NOT EXISTS (${matching})`;
  }
}
