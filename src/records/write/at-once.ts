/**
 * What writes of one statement have in common. Such a statement decides, writes and returns the
 * record; where it writes nothing, the transaction that follows finds out why, on the locked row.
 */

import type { Queryable, Transaction } from '../../database/contract.ts';
import { param, type Sql, sql, uuid } from '../../sql.ts';
import type { AccessContext, Reading, Store } from '../access-context.ts';
import { scopeOf, tenantKeyOf } from '../scope.ts';
import { versionColumn } from '../select.ts';

export interface AtOnce extends Reading {
  /** Sends one statement that writes, and resolves with the rows that it returns. `row`: the id of the one that it locks. */
  write(statement: Sql, row?: string): ReturnType<Queryable['rows']>;
}

export interface Target {
  readonly id: string;
  /** The versions of the record that are accepted; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
}

/** In a transaction of its own, or as a part of `tx`. */
export function atOnce(store: Store, access: AccessContext, tx?: Transaction): AtOnce {
  const { table } = access.collection;
  const isDivided = tenantKeyOf(access.collection) !== undefined;
  const write: AtOnce['write'] = (statement, row) =>
    tx === undefined ? store.db.write(statement, { table, row, isDivided }) : tx.rows(statement);
  return { store, access, q: tx ?? store.db, write };
}

/**
 * The condition that the row `alias` still has the version that `ifVersion` accepts; undefined: the
 * record has another one. A version is opaque, so the database cannot compare it: the row is read
 * beforehand, without a lock.
 */
export async function stillAccepted(
  reading: Reading,
  { id, ifVersion }: Target,
  alias: string,
): Promise<readonly Sql[] | undefined> {
  if (ifVersion === undefined) return [];
  const { store, q, access } = reading;
  const { name } = access.collection;
  const [cells] = await q.rows(sql`
    SELECT ${versionColumn('t')}
      FROM ${scopeOf(reading)
        .from(name, 't')
        .where(sql`t.id = ${uuid(id)}`)}`);
  if (cells === undefined) return undefined;
  const count = cells[0]!;
  const version = (await store.versions(q)).of({ collection: name, id, count });
  return ifVersion.includes(version) ? [sql`${versionColumn(alias)} = ${param('int8', count)}`] : undefined;
}
