/**
 * Changes of a large table while it is used: sequences of steps of which none keeps others waiting
 * while it reads the table. After each of them, an interrupted migration goes on from what it finds.
 */

import { constraintName } from '../schema/model/stored-names.ts';
import type { ActualIndex } from './catalog.ts';
import { type ChangingTable, quotedName } from './changing-table.ts';
import { type Attached, attachUnique, createUniqueIndex } from './ddl.ts';
import type { Step } from './step.ts';

export interface RequiredColumn {
  readonly column: string;
  /** Gives a value to rows without one. */
  readonly fill: string | undefined;
  /** `… SET NOT NULL`. */
  readonly statement: string;
  /** What to say of rows that have no value. */
  readonly why: string;
}

/**
 * PostgreSQL takes a validated CHECK for the proof, and does not read the table for SET NOT NULL. The
 * CHECK holds for every update of a row, so rows get their values before it; those that others wrote
 * in between get them after it.
 */
export function requireOnline(t: ChangingTable, { column, fill, statement, why }: RequiredColumn): readonly Step[] {
  const found = t.requiredCheckOf(column);
  const check = found?.name ?? constraintName(t.table.name, [column], 'required');
  const drop = `${t.alter} DROP CONSTRAINT ${quotedName(check)}`;
  const add = `${t.alter} ADD CONSTRAINT ${quotedName(check)} CHECK (${quotedName(column)} IS NOT NULL) NOT VALID`;
  const filling: readonly Step[] = fill === undefined ? [] : [{ sql: fill, apart: { pagesOf: t.table.name } }];
  const steps: Step[] = [...filling];
  if (found === undefined) steps.push({ sql: add, apart: 'transaction' }, ...filling);
  if (found?.isValidated !== true) steps.push(validate(t, check, why));
  return [...steps, { sql: statement, apart: 'transaction' }, { sql: drop, apart: 'transaction' }];
}

/** Rows that exist are looked at while others read and write. */
export function validate(t: ChangingTable, constraint: string, why: string): Step {
  const name = quotedName(constraint);
  return {
    sql: `${t.alter} VALIDATE CONSTRAINT ${name}`,
    apart: 'transaction',
    onBrokenRow: { why, undo: { sql: `${t.alter} DROP CONSTRAINT ${name}`, apart: 'transaction' } },
  };
}

export interface UniqueColumns extends Attached {
  readonly columns: readonly string[];
  /** What to say of rows that are equal. */
  readonly why: string;
  /** The indexes of an interrupted migration. */
  readonly left: readonly ActualIndex[];
}

export function uniqueOnline(t: ChangingTable, { columns, why, left, ...attached }: UniqueColumns): readonly Step[] {
  const { name } = t.table;
  const drop = (index: string): Step => ({ sql: dropIndex(index, true), apart: 'statement' });
  const { index } = attached;
  const build = createUniqueIndex(name, columns, index);
  return [
    ...left.map((one) => drop(one.name)),
    { sql: build, apart: 'statement', onBrokenRow: { why, undo: drop(index) } },
    { sql: attachUnique(name, columns, attached), apart: 'transaction' },
  ];
}

export const dropIndex = (index: string, isOnline: boolean): string =>
  `DROP INDEX ${isOnline ? 'CONCURRENTLY ' : ''}${quotedName(index)}`;

/** Of an index that is built: without the one that an interrupted migration left. */
export function buildIndex(sql: string, left: ActualIndex | undefined, isOnline: boolean): readonly Step[] {
  const apart = isOnline ? ({ apart: 'statement' } as const) : {};
  return [...(left === undefined ? [] : [{ sql: dropIndex(left.name, isOnline), ...apart }]), { sql, ...apart }];
}
