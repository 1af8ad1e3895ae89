/** Deletes a record; dependents cascade, are nulled, or block it, per `on_delete`. */

import { StoreError, type Transaction } from '../../database/contract.ts';
import { forbidden, notFound } from '../../refusal.ts';
import type { BelongsTo, Collection, ManyToMany } from '../../schema/model/model.ts';
import { ident, type Param, param, type Sql, sql, uuid } from '../../sql.ts';
import { type AccessContext, actorOf, type Reading, type Store } from '../access-context.ts';
import { stillReferenced } from '../constraint-errors.ts';
import { isShownAsNone, type RecordsByCollection, recordsGoingWith } from '../relations/cascades.ts';
import { everyTenant, inTenantOf, isReadableElsewhere, type ScopedRows, scopeOf, tenantKeyOf } from '../scope.ts';
import { atOnce } from './at-once.ts';
import { assertVersion, lockRow } from './locked-row.ts';
import { removeAtOnce } from './remove-at-once.ts';
import { touched } from './touched.ts';

export interface RemoveRequest {
  readonly id: string;
  /** The versions of the record that may be deleted; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
}

export async function remove(store: Store, access: AccessContext, request: RemoveRequest): Promise<void> {
  const gone = await referenceErrors(async () => {
    const { id } = request;
    const within = await inTenantOf(atOnce(store, access), id, 'delete');
    if (await removeAtOnce(within, request)) return NOTHING_ELSE;
    const { tenant } = within;
    return store.db.transaction((tx) => removeIn({ store, q: tx, access, tenant }, tx, request));
  });
  const [files, users] = [idsOf(gone, 'files'), idsOf(gone, 'users')];
  if (files.length > 0) await store.hooks.onFilesRemoved?.(files);
  if (users.length > 0) await store.hooks.afterUsersChanged?.(users);
}

/**
 * As one of several writes of a transaction. Returns what was deleted: the caller runs the hooks
 * after the commit.
 */
export function removeWithin(
  store: Store,
  access: AccessContext,
  { tx, ...request }: RemoveRequest & { readonly tx: Transaction },
): Promise<RecordsByCollection> {
  return referenceErrors(async () => {
    const within = await inTenantOf(atOnce(store, access, tx), request.id, 'delete');
    if (await removeAtOnce(within, request)) return NOTHING_ELSE;
    return removeIn({ store, q: tx, access, tenant: within.tenant }, tx, request);
  });
}

const NOTHING_ELSE: RecordsByCollection = new Map();

export const idsOf = (records: RecordsByCollection, collection: string): readonly string[] => [
  ...(records.get(collection) ?? []),
];

async function referenceErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof StoreError && error.kind === 'foreign_key' ? stillReferenced() : error;
  }
}

/** Returns what was deleted. */
async function removeIn(
  reading: Reading,
  tx: Transaction,
  { id, ifVersion }: RemoveRequest,
): Promise<RecordsByCollection> {
  const { store, access } = reading;
  const { name } = access.collection;
  const permit = access.permit(name, 'delete');
  const conditions = [permit.where('t')];
  const locked = await lockRow(reading, {
    collection: name,
    id,
    conditions,
    other: permit.consultsOthers,
    strength: 'UPDATE',
    isOpen: false,
  });
  if (locked === undefined) throw (await isReadableElsewhere(reading, id)) ? forbidden() : notFound();
  if (!locked.holds[0]) throw locked.isReadable ? forbidden() : notFound();
  assertVersion(locked.version, ifVersion);
  if (tenantKeyOf(access.collection) === undefined) await store.prepareForEveryTenant(tx);
  const going = await recordsGoingWith(reading, id);
  const users = idsOf(going, 'users');
  if (users.length > 0) {
    await store.hooks.onUsersDeleted?.({ ids: users, cause: { collection: name, id }, by: actorOf(access) }, tx);
  }
  for (const statement of updatesToReferrers(reading, going)) await tx.run(statement);
  await tx.run(
    sql`DELETE FROM ${scopeOf(reading)
      .from(name, 't')
      .where(sql`t.id = ${uuid(id)}`)}`,
  );
  return going;
}

/**
 * Losing a member or a reference is a change of a record, which the database's own SET NULL and
 * CASCADE would not count.
 */
function* updatesToReferrers({ store, access, tenant }: Reading, going: RecordsByCollection): Iterable<Sql> {
  // A record without a tenant can be referenced in every tenant.
  const scope = tenant === undefined ? everyTenant(store.schema) : scopeOf({ store, tenant });
  for (const collection of store.schema.collections.values()) {
    for (const relation of collection.relations.values()) {
      const ids = going.get(relation.collection);
      if (ids === undefined || ids.size === 0 || !isShownAsNone(relation)) continue;
      const rows = scope.from(collection.name, 't');
      const referrers = { rows, collection, targets: param('uuid[]', [...ids]), now: access.now };
      if (relation.kind === 'many_to_many') yield touchOwners(referrers, relation);
      if (relation.kind === 'belongs_to') yield clearReference(referrers, relation);
    }
  }
}

interface Referrers {
  /** The records `t`. */
  readonly rows: ScopedRows;
  readonly collection: Collection;
  readonly targets: Param;
  readonly now: string;
}

function touchOwners({ rows, collection, targets, now }: Referrers, relation: ManyToMany): Sql {
  const { sourceColumn, targetColumn } = relation;
  const links = rows.related.links(relation, collection.name, 'l');
  const isLink = sql`l.${ident(sourceColumn)} = t.id`;
  const isGoing = sql`l.${ident(targetColumn)} = ANY(${targets})`;
  return sql`UPDATE ${rows.set([touched(now)], sql`EXISTS (SELECT 1 FROM ${links.where(isLink, isGoing)})`)}`;
}

function clearReference({ rows, targets, now }: Referrers, { column }: BelongsTo): Sql {
  const cleared = sql`${ident(column)} = NULL`;
  return sql`UPDATE ${rows.set([cleared, touched(now)], sql`${ident('t', column)} = ANY(${targets})`)}`;
}
