/** Deletes a record; dependents cascade, are nulled, or block it, per `on_delete`. */

import { StoreError, type Transaction } from '../../database/contract.ts';
import { LINK_TENANT_COLUMN } from '../../policy/condition.ts';
import { forbidden, notFound } from '../../refusal.ts';
import type { BelongsTo, Collection, ManyToMany } from '../../schema/model/model.ts';
import { empty, ident, type Param, param, raw, type Sql, sql, uuid } from '../../sql.ts';
import { type AccessContext, actorOf, type Reading, type Store } from '../access-context.ts';
import { stillReferenced } from '../constraint-errors.ts';
import { tableOf } from '../record-shape.ts';
import { isShownAsNone, type RecordsByCollection, recordsGoingWith } from '../relations/cascades.ts';
import { areLinksOfTenant, EVERY_TENANT, inTenantOf, isOfTenant, isReadableElsewhere, tenancyOf } from '../scope.ts';
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
  if (tenancyOf(access.collection) === undefined) await store.prepareForEveryTenant(tx);
  const going = await recordsGoingWith(reading, id);
  const users = idsOf(going, 'users');
  if (users.length > 0) {
    await store.hooks.onUsersDeleted?.({ ids: users, cause: { collection: name, id }, by: actorOf(access) }, tx);
  }
  for (const statement of updatesToReferrers(reading, going)) await tx.run(statement);
  const isOwn = isOfTenant(reading, name, access.collection.table);
  await tx.run(sql`DELETE FROM ${tableOf(access.collection)} WHERE id = ${uuid(id)}${isOwn}`);
  return going;
}

/**
 * Losing a member or a reference is a change of a record, which the database's own SET NULL and
 * CASCADE would not count.
 */
function* updatesToReferrers({ store, access, tenant }: Reading, going: RecordsByCollection): Iterable<Sql> {
  for (const collection of store.schema.collections.values()) {
    for (const relation of collection.relations.values()) {
      const ids = going.get(relation.collection);
      if (ids === undefined || ids.size === 0 || !isShownAsNone(relation)) continue;
      const referrers = { store, collection, tenant, targets: param('uuid[]', [...ids]), now: access.now };
      if (relation.kind === 'many_to_many') yield touchOwners(referrers, relation);
      if (relation.kind === 'belongs_to') yield clearReference(referrers, relation);
    }
  }
}

interface Referrers {
  readonly store: Store;
  readonly collection: Collection;
  readonly tenant: string | undefined;
  readonly targets: Param;
  readonly now: string;
}

function touchOwners(referrers: Referrers, relation: ManyToMany): Sql {
  const { collection, targets, now } = referrers;
  const { linkTable, sourceColumn, targetColumn } = relation;
  const tenancy = tenancyOf(collection);
  // Links are joined within their tenant.
  const key = tenancy === undefined ? raw('id') : sql`(${ident(tenancy.column)}, id)`;
  const linked = tenancy === undefined ? empty : sql`l.${ident(LINK_TENANT_COLUMN)}, `;
  return sql`
    UPDATE ${scopeOf(referrers)}${tableOf(collection)}
       SET ${touched(now)}
     WHERE ${key} IN (SELECT ${linked}l.${ident(sourceColumn)}
                    FROM ${ident(linkTable)} AS l
                   WHERE l.${ident(targetColumn)} = ANY(${targets})${areLinksOfTenant(referrers, collection.name, 'l')})${areOwn(referrers)}`;
}

function clearReference(referrers: Referrers, relation: BelongsTo): Sql {
  const { collection, targets, now } = referrers;
  const column = ident(relation.column);
  return sql`
    UPDATE ${scopeOf(referrers)}${tableOf(collection)}
       SET ${column} = NULL, ${touched(now)}
     WHERE ${column} = ANY(${targets})${areOwn(referrers)}`;
}

const areOwn = (referrers: Referrers): Sql =>
  isOfTenant(referrers, referrers.collection.name, referrers.collection.table);

/** A record that every machine has can be referenced in every tenant. */
const scopeOf = ({ collection, tenant }: Referrers): Sql =>
  tenancyOf(collection) !== undefined && tenant === undefined ? EVERY_TENANT : empty;
