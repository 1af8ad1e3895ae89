/**
 * A row that this transaction has locked: its record, whether the caller may read it, and which
 * rules hold for it.
 */

import type { Cells } from '../../database/contract.ts';
import type { Row } from '../../policy/types.ts';
import { Refusal } from '../../refusal.ts';
import { empty, join, raw, type Sql, sql, uuid } from '../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import { scopeOf } from '../scope.ts';
import { recordColumns, VERSION_WIDTH, versionColumn } from '../select.ts';

export interface Locked {
  readonly row: Row;
  readonly version: string;
  readonly isReadable: boolean;
  /** In the order of `conditions`; NULL is not true. */
  readonly holds: readonly boolean[];
  /** The version, then the record. */
  readonly cells: Cells;
}
interface LockedRowQuery {
  readonly collection: string;
  readonly id: string;
  readonly conditions: readonly Sql[];
}

/** `other`: the conditions read other rows than the locked one. */
export interface Lock extends LockedRowQuery {
  readonly other: boolean;
  readonly strength: 'UPDATE' | 'NO KEY UPDATE';
  /** The write may be allowed where no condition holds. */
  readonly isOpen: boolean;
}

/**
 * Locks first and reads afterwards if anything but the row itself is read: a statement that waited
 * for a lock sees the locked row as it is now, but every other row as it was before the wait.
 * A row is not locked if no condition holds: a caller who may not write it must not hold up those
 * who may. Undefined: there is no such row.
 */
export async function lockRow(reading: Reading, lock: Lock): Promise<Locked | undefined> {
  const { store, q } = reading;
  const { collection, id, strength, conditions, isOpen } = lock;
  const given = isOpen ? [] : [sql`(${join([raw('FALSE'), ...conditions], ' OR ')})`];
  const { relations } = store.shape(collection).collection;
  const hasMore = [...relations.values()].some(({ kind }) => kind === 'has_one' || kind === 'many_to_many');
  if (!hasMore && !lock.other && !reading.access.permit(collection, 'read').consultsOthers) {
    return (await look(reading, lock, given, sql` FOR ${raw(strength)}`)) ?? refusedRow(reading, lock);
  }
  const found = await q.rows(sql`
    SELECT 1
      FROM ${scopeOf(reading)
        .from(collection, 't')
        .where(sql`t.id = ${uuid(id)}`, ...given)}
       FOR ${raw(strength)}`);
  return found.length === 0 ? refusedRow(reading, lock) : lookAt(reading, lock);
}

/** For the answer alone: no condition held when it was to be locked, whatever has changed since. */
async function refusedRow(reading: Reading, lock: Lock): Promise<Locked | undefined> {
  const seen = lock.isOpen ? undefined : await look(reading, lock);
  return seen && { ...seen, holds: seen.holds.map(() => false) };
}

/** A row that this transaction has locked or written. */
export async function lookAt(reading: Reading, place: LockedRowQuery): Promise<Locked> {
  return (await look(reading, place))!;
}

async function look(
  reading: Reading,
  { collection, id, conditions }: LockedRowQuery,
  given: readonly Sql[] = [],
  lock = empty,
): Promise<Locked | undefined> {
  const { store, q, access, tenant } = reading;
  const versions = await store.versions(q);
  const place = { collection, alias: 't', tenant };
  const questions = [readable(access, collection, 't'), ...conditions].map((condition) => sql`(${condition})`);
  const columns = join([versionColumn('t'), recordColumns(store, access, place), ...questions], ', ');
  const [cells] = await q.rows(sql`
    SELECT ${columns}
      FROM ${scopeOf(reading)
        .from(collection, 't')
        .where(sql`t.id = ${uuid(id)}`, ...given)}${lock}`);
  if (cells === undefined) return undefined;
  const [isReadable, ...holds] = cells.slice(-questions.length).map((cell) => cell === 't');
  return {
    version: versions.of({ collection, id, count: cells[0]! }),
    isReadable: isReadable!,
    holds,
    row: store.shape(collection).row(cells, VERSION_WIDTH),
    cells,
  };
}

/** `allowed`: see `UpdateRequest.ifVersion`. */
export function assertVersion(version: string, allowed: readonly string[] | undefined): void {
  if (allowed !== undefined && !allowed.includes(version)) {
    throw new Refusal('changed', 'the record has changed since it was read; read it again');
  }
}
