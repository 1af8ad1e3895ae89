/**
 * Changes of a large table while it is in use: sequences of steps, none of which blocks readers or
 * writers while it reads the table. After each step, an interrupted migration continues from the
 * state that it finds.
 */

import { constraintName } from '../schema/model/stored-names.ts';
import { ident, identBeside, join, raw, type Sql, sql, tableIdent } from '../sql.ts';
import type { ActualIndex } from './catalog.ts';
import { pagedRows } from './search-columns.ts';
import type { Step } from './step.ts';
import type { TableDiff } from './table-diff.ts';
import { columnList, type ForeignKey, foreignColumns, indexMethod, type Table, uniqueName } from './tables.ts';

export interface RequiredColumn {
  readonly column: string;
  /** Gives a value to rows without one. */
  readonly fill: Sql | undefined;
  /** `… SET NOT NULL`. */
  readonly statement: Sql;
  /** The message about rows without a value. */
  readonly why: string;
}

/**
 * PostgreSQL takes a validated CHECK for the proof, and does not read the table for SET NOT NULL. The
 * CHECK holds for every update of a row, so rows get their values before it; rows that others wrote
 * in between get them after it.
 */
export function requireOnline(t: TableDiff, { column, fill, statement, why }: RequiredColumn): readonly Step[] {
  const found = t.requiredCheckOf(column);
  const check = found?.name ?? constraintName(t.table.name, [column], 'required');
  const drop = sql`${t.alter} DROP CONSTRAINT ${ident(check)}`;
  const add = sql`${t.alter} ADD CONSTRAINT ${ident(check)} CHECK (${ident(column)} IS NOT NULL) NOT VALID`;
  const filling: readonly Step[] = fill === undefined ? [] : [{ sql: fill, apart: { pagesOf: pagedRows(t.table) } }];
  const steps: Step[] = [...filling];
  if (found === undefined) steps.push({ sql: add, apart: 'transaction' }, ...filling);
  if (found?.isValidated !== true) steps.push(validate(t, check, why));
  return [...steps, { sql: statement, apart: 'transaction' }, { sql: drop, apart: 'transaction' }];
}

/** PostgreSQL checks the existing rows while others read and write. */
export function validate(t: TableDiff, constraint: string, why: string): Step {
  const name = ident(constraint);
  return {
    sql: sql`${t.alter} VALIDATE CONSTRAINT ${name}`,
    apart: 'transaction',
    onBrokenRow: { why, undo: { sql: sql`${t.alter} DROP CONSTRAINT ${name}`, apart: 'transaction' } },
  };
}

/** PostgreSQL does not check the existing rows. */
export function addForeignKeyNotValid(table: string, key: ForeignKey): Sql {
  const { own, references } = foreignColumns(key);
  const name = ident(constraintName(table, [key.column], 'fkey'));
  const target = sql`${tableIdent(key.table)} (${columnList(references)})`;
  const add = sql`ALTER TABLE ${tableIdent(table)} ADD CONSTRAINT ${name}`;
  const actions = raw(`ON DELETE ${key.onDelete}${key.isOfValue ? ' ON UPDATE CASCADE' : ''}`);
  return sql`${add} FOREIGN KEY (${columnList(own)}) REFERENCES ${target} ${actions} NOT VALID`;
}

interface AttachedIndex {
  readonly index: string;
  /** Names of constraints that the new one replaces. */
  readonly replaces: readonly string[];
}

/** The index gets the name of the constraint. A single statement keeps rows checked at all times. */
export function attachUnique(table: string, columns: readonly string[], { index, replaces }: AttachedIndex): Sql {
  const add = sql`ADD CONSTRAINT ${ident(uniqueName(table, columns))} UNIQUE USING INDEX ${ident(index)}`;
  const changes = [...replaces.map((former) => sql`DROP CONSTRAINT ${ident(former)}`), add];
  return sql`ALTER TABLE ${tableIdent(table)} ${join(changes, ', ')}`;
}

export interface UniqueColumns extends AttachedIndex {
  readonly columns: readonly string[];
  /** The message about rows with equal values. */
  readonly why: string;
  /** The indexes of an interrupted migration. */
  readonly left: readonly ActualIndex[];
}

export function uniqueOnline(t: TableDiff, { columns, why, left, ...attached }: UniqueColumns): readonly Step[] {
  const { name } = t.table;
  const drop = (index: string): Step => ({ sql: dropIndex(name, index, true), apart: 'statement' });
  const { index } = attached;
  const build = sql`CREATE UNIQUE INDEX CONCURRENTLY ${ident(index)} ON ${tableIdent(name)} (${columnList(columns)})`;
  return [
    ...left.map((one) => drop(one.name)),
    { sql: build, apart: 'statement', onBrokenRow: { why, undo: drop(index) } },
    { sql: attachUnique(name, columns, attached), apart: 'transaction' },
  ];
}

export function createIndexConcurrently(table: Table, columns: readonly string[]): Sql {
  const index = ident(constraintName(table.name, columns, 'idx'));
  const using = indexMethod(table, columns);
  const method = raw(using === undefined ? '' : `USING ${using} `);
  return sql`CREATE INDEX CONCURRENTLY ${index} ON ${tableIdent(table.name)} ${method}(${columnList(columns)})`;
}

export const dropIndex = (table: string, index: string, isOnline: boolean): Sql =>
  sql`DROP INDEX ${raw(isOnline ? 'CONCURRENTLY ' : '')}${identBeside(table, index)}`;

/** @param drop removes the index of an interrupted migration */
export function buildIndex(build: Sql, drop: Sql | undefined, isOnline: boolean): readonly Step[] {
  const apart = isOnline ? ({ apart: 'statement' } as const) : {};
  return [...(drop === undefined ? [] : [{ sql: drop, ...apart }]), { sql: build, ...apart }];
}
