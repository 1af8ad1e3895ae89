/** The steps that bring the constraints and indexes of a table that exists to those of the schema. */

import { constraintName } from '../schema/model/stored-names.ts';
import type { ActualConstraint, ActualIndex } from './catalog.ts';
import { type ChangingTable, quotedName, sameColumns } from './changing-table.ts';
import { addForeignKey, addUnique, attachUnique, createIndex, foreignColumns, uniqueName } from './ddl.ts';
import { buildIndex, dropIndex, uniqueOnline, validate } from './online.ts';
import { createTrigramIndex } from './search-columns.ts';
import type { Step } from './step.ts';
import type { ForeignKey } from './tables.ts';

interface RenamedConstraint {
  readonly constraint: ActualConstraint | undefined;
  readonly to: string;
  /** Makes it anew. */
  readonly add?: () => string;
}

const SUFFIX = { u: 'key', f: 'fkey', p: 'pkey', c: 'required' } as const;

export class ConstraintChanges {
  readonly #t: ChangingTable;
  readonly #name: string;

  constructor(table: ChangingTable) {
    this.#t = table;
    this.#name = table.table.name;
  }

  /** Before columns change. */
  async stepsBefore(): Promise<Step[]> {
    return [
      ...this.#dropConstraints(await this.#t.isOnline()),
      ...this.#dropLeftovers(),
      ...this.#checkKeysAtOnce(),
      ...this.#renameConstraints(),
      ...this.#renameIndexes(),
    ];
  }

  /** Steps that refer to columns which other tables may get only after this one's. */
  async stepsAfter(): Promise<Step[]> {
    const steps: Step[] = [];
    for (const columns of this.#t.table.uniques)
      if (this.#uniqueOf(columns) === undefined) steps.push(...(await this.#addUnique(columns)));
    for (const key of this.#t.table.foreignKeys) steps.push(...(await this.#addForeignKey(key)));
    for (const columns of this.#t.table.indexes) {
      if (this.#indexOf(columns) === undefined)
        steps.push(...(await this.#build(columns, (isOnline) => createIndex(this.#name, columns, isOnline))));
    }
    return steps;
  }

  /** `schema`: of the extension. */
  async searchSteps(schema: string | undefined): Promise<Step[]> {
    const steps: Step[] = [];
    for (const column of this.#t.table.searched) {
      if (this.#indexOf([column]) !== undefined) continue;
      const create = (isOnline: boolean) => createTrigramIndex(this.#name, column, { schema, isOnline });
      steps.push(...(await this.#build([column], create)));
    }
    return steps;
  }

  async #build(columns: readonly string[], create: (isOnline: boolean) => string): Promise<readonly Step[]> {
    const isOnline = await this.#t.isOnline();
    return buildIndex(create(isOnline), this.#leftover(constraintName(this.#name, columns, 'idx')), isOnline);
  }

  #dropConstraints(isOnline: boolean): Step[] {
    const { uniques, foreignKeys } = this.#t.table;
    const replaced = uniques.flatMap((columns) => this.#replacedBy(columns));
    // Rows stay checked until the other one is built.
    const isLater = uniques.flatMap((columns) => (this.#isSwapped(columns, isOnline) ? this.#replacedBy(columns) : []));
    const gone = this.#t.actual.constraints.filter((constraint) => {
      if (isLater.includes(constraint)) return false;
      if (constraint.kind === 'u') return !this.#isWanted(constraint);
      return constraint.kind === 'f' && !foreignKeys.some((key) => this.#isKey(key, constraint));
    });
    return gone.map((constraint) => {
      const { name, kind, columns } = constraint;
      const sql = `${this.#t.alter} DROP CONSTRAINT ${quotedName(name)}`;
      // Nodes of a newer version may rely on it.
      const isExtra = kind === 'u' && !replaced.includes(constraint) && !this.#hasColumnsOfUnique(constraint);
      if (this.#isOurs(constraint)) {
        const needed = this.#whyNeeded(constraint);
        const impossible = needed === undefined ? {} : { destructive: needed, isImpossible: true };
        return { sql, ...impossible, ...(isExtra && { isExtra }) };
      }
      // No schema can declare it, so nothing would bring it back.
      const what = `${kind === 'u' ? 'UNIQUE' : 'FOREIGN KEY'} (${columns.join(', ')})`;
      return {
        sql,
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

  /** Of a migration that was interrupted, for a schema that wanted more than this one. */
  #dropLeftovers(): Step[] {
    const { actual, table } = this.#t;
    const missing = table.uniques.filter((columns) => this.#uniqueOf(columns) === undefined);
    const building = new Set(missing.map((columns) => uniqueName(this.#name, columns, 'newkey')));
    const uniques = new Set(table.uniques.map((columns) => uniqueName(this.#name, columns)));
    const isOurs = ({ name, columns, isUnique }: ActualIndex): boolean =>
      name === (isUnique ? uniqueName(actual.name, columns) : constraintName(actual.name, columns, 'idx'));
    const isGone = (index: ActualIndex): boolean => {
      const { name, columns, isUnique, isValid } = index;
      // It is no constraint's yet, so nothing is missing without it.
      if (isUnique && name === uniqueName(actual.name, columns, 'newkey')) return !building.has(name);
      return !isValid && isOurs(index) && !uniques.has(name) && !this.#wantsIndex(name);
    };
    return actual.indexes.filter(isGone).map(({ name }) => ({ sql: dropIndex(name, false) }));
  }

  #wantsIndex(name: string): boolean {
    const { indexes, searched } = this.#t.table;
    return [...indexes, ...searched.map((column) => [column])].some(
      (columns) => constraintName(this.#name, columns, 'idx') === name,
    );
  }

  /** Foreign keys of an adopted table that wait for the commit: a write would be answered before it fails. */
  #checkKeysAtOnce(): Step[] {
    const { table, actual, alter } = this.#t;
    const waiting = actual.constraints.filter(
      (constraint) => !constraint.isPlain && table.foreignKeys.some((key) => this.#isKey(key, constraint)),
    );
    return waiting.map(({ name }) => ({ sql: `${alter} ALTER CONSTRAINT ${quotedName(name)} NOT DEFERRABLE` }));
  }

  /** Follows a renamed column: a constraint error finds its field by the name of the constraint. */
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
        return [{ sql: `${alter} DROP CONSTRAINT ${quotedName(constraint.name)}` }, { sql: add() }];
      return [{ sql: `${alter} RENAME CONSTRAINT ${quotedName(constraint.name)} TO ${quotedName(to)}` }];
    });
  }

  /** Another table may get the former name, and its key that of this one. */
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
        : [{ sql: `ALTER INDEX ${quotedName(name)} RENAME TO ${quotedName(to)}` }];
    });
  }

  #isKey(key: ForeignKey, { kind, columns, table, onDelete }: ActualConstraint): boolean {
    const isOfColumn = kind === 'f' && sameColumns(columns, this.#t.storedAll(foreignColumns(key).own));
    return isOfColumn && table === key.table && onDelete === key.onDelete;
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

  /** Unique constraints of its field that are not as the schema wants them, or have its name, while there is none that is. */
  #replacedBy(unique: readonly string[]): readonly ActualConstraint[] {
    if (this.#uniqueOf(unique) !== undefined) return [];
    const { actual, table } = this.#t;
    return actual.constraints.filter((constraint) => {
      if (constraint.kind !== 'u' || this.#isWanted(constraint)) return false;
      const places = table.uniques.filter((columns) => this.#standsFor(constraint, columns));
      // What is made at once needs its name at once.
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

  /** Whether the former constraint goes in the statement that adds the new one. */
  #isSwapped(unique: readonly string[], isOnline: boolean): boolean {
    return isOnline && this.#t.hasColumns(unique);
  }

  #indexOf(columns: readonly string[]): ActualIndex | undefined {
    const stored = this.#t.storedAll(columns);
    return this.#t.actual.indexes.find(
      (index) => index.isValid && !index.isUnique && sameColumns(index.columns, stored),
    );
  }

  /** Of a migration that was interrupted. */
  #leftover(name: string): ActualIndex | undefined {
    return this.#t.actual.indexes.find((index) => index.name === name && !index.isValid);
  }

  async #addUnique(columns: readonly string[]): Promise<readonly Step[]> {
    const statement = addUnique(this.#name, columns);
    const column = columns.at(-1)!;
    if (!this.#t.hasColumns(columns)) return [await this.#addUniqueToNew(statement, columns)];
    const within = columns.length === 1 ? '' : ` within ${columns.slice(0, -1).map(quotedName).join(', ')}`;
    const why =
      `"${this.#name}"."${column}" becomes unique${within}, and some rows have equal values; change them first; ` +
      `${this.#t.duplicates(columns)} finds them`;
    const isOnline = await this.#t.isOnline();
    // At once, they are dropped before.
    const swapped = this.#isSwapped(columns, isOnline) ? this.#replacedBy(columns) : [];
    const needed = swapped.flatMap((constraint) => this.#whyNeeded(constraint) ?? []);
    if (needed.length > 0) return [{ sql: statement, destructive: needed.join('; '), isImpossible: true }];
    const replaces = swapped.map(({ name }) => name);
    const names = [uniqueName(this.#name, columns), uniqueName(this.#name, columns, 'newkey')] as const;
    const built = this.#builtUnique(columns, names);
    const left = this.#t.actual.indexes.filter(
      ({ name, isValid }) => name !== built && (name === names[1] || (name === names[0] && !isValid)),
    );
    const drops = left.map(({ name }) => ({ sql: dropIndex(name, false) }));
    if (built !== undefined) return [...drops, { sql: attachUnique(this.#name, columns, { index: built, replaces }) }];
    if (await this.#t.hasDuplicates(columns)) return [{ sql: statement, destructive: why, isImpossible: true }];
    const index = names[replaces.length === 0 ? 0 : 1];
    if (isOnline) return uniqueOnline(this.#t, { columns, why, left, index, replaces });
    return [...drops, { sql: statement }];
  }

  /** The index that an interrupted migration has built, which only has to become the constraint. */
  #builtUnique(unique: readonly string[], names: readonly string[]): string | undefined {
    const stored = this.#t.storedAll(unique);
    const built = this.#t.actual.indexes.filter(
      ({ columns, isUnique, isValid }) => isUnique && isValid && sameColumns(columns, stored),
    );
    return names.find((name) => built.some((index) => index.name === name));
  }

  /** Rows that exist get the default of a new column that is required. */
  async #addUniqueToNew(statement: string, unique: readonly string[]): Promise<Step> {
    const { columns, name } = this.#t.table;
    const isFilled = unique.every((column) => columns.some((one) => one.name === column && one.required));
    if (!isFilled || !(await this.#t.exists('true OFFSET 1'))) return { sql: statement };
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
    if (!this.#t.hasColumns(own)) return [{ sql: add }];
    const isHeld = actual.constraints.some(({ kind, columns, table, isValidated }) => {
      const isSame = kind === 'f' && table === key.table && sameColumns(columns, this.#t.storedAll(own));
      return isSame && isValidated;
    });
    const orphans = this.#orphans(key);
    const why =
      `"${this.#name}"."${key.column}" would reference "${key.table}", but already holds ids of other records; ` +
      `${this.#t.rowsWhere(orphans)} finds them`;
    if (!isHeld && (await this.#t.exists(orphans))) return [{ sql: add, destructive: why, isImpossible: true }];
    const name = constraintName(this.#name, [key.column], 'fkey');
    if (existing !== undefined) return [validate(this.#t, name, why)];
    if (!(await this.#t.isOnline())) return [{ sql: add }];
    return [{ sql: addForeignKey(this.#name, key, true) }, validate(this.#t, name, why)];
  }

  /** The condition for rows whose reference leads nowhere. */
  #orphans({ column, table, tenant }: ForeignKey): string {
    const own = (name: string): string => `${quotedName(this.#t.actual.name)}.${quotedName(this.#t.stored(name))}`;
    const stored = own(column);
    const target = this.#t.storedTable(table);
    if (target === undefined) return `${stored} IS NOT NULL`;
    const isNew = tenant === undefined || !this.#t.hasStored(table, tenant.references);
    const isOfTenant = isNew ? '' : ` AND target.${quotedName(tenant.references)} = ${own(tenant.column)}`;
    return `${stored} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ${quotedName(target)} AS target WHERE target.id = ${stored}${isOfTenant})`;
  }
}
