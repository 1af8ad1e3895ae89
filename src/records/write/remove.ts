/** Deletes a record; dependents cascade, are nulled, or block it, per `on_delete`. */

import { StoreError, type Transaction } from '../../database/contract.ts';
import { idReferredTo } from '../../policy/stored-rows.ts';
import { forbidden, notFound } from '../../refusal.ts';
import { type BelongsTo, type Collection, type ManyToMany, takesWrite, tenantKeyOf } from '../../schema/model/model.ts';
import { ident, type Param, type Sql, sql } from '../../sql.ts';
import { type AccessContext, actorOf, type Reading, type Store } from '../access-context.ts';
import { ownersRefusal, stillReferenced } from '../constraint-errors.ts';
import { collectionsKept, forgetContents, keptIdIn, keptIdOf, keptNowhere } from '../idempotency.ts';
import { type RecordKey, recordKeyIn, recordKeyOf } from '../record-key.ts';
import { blockingReferences } from '../relations/blocking-references.ts';
import {
  cascadingFrom,
  type GoingRecords,
  isFollowed,
  isShownAsNone,
  type RecordsByCollection,
  recordsGoingWith,
} from '../relations/cascades.ts';
import { deleteLeft, requireUnreferenced } from '../relations/unfollowed-references.ts';
import { everyTenant, inTenantOf, isReadableElsewhere, type Scope, type ScopedRows, scopeOf } from '../scope.ts';
import { keepRows } from './kept-rows.ts';
import { changedSince, lockRow } from './locked-row.ts';
import { readsReferrers } from './locks/mutual-rules.ts';
import { hasTurn, takesTurnToDelete, takeTurn, turnName, turnOf } from './locks/value-locks.ts';
import { recordDeletion, recordingChanges } from './row-history.ts';
import {
  acceptedCounts,
  hasCount,
  type StatementWriter,
  sendWrite,
  statementWriter,
  versionUnchanged,
} from './single-statement.ts';
import { isTouched, STORED, touched } from './written-row.ts';

export interface RemoveRequest {
  readonly id: string;
  /** The versions of the record that may be deleted; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
}

export async function deleteRecord(store: Store, access: AccessContext, request: RemoveRequest): Promise<void> {
  const removed = await removeIn(store, access, request);
  const [files, users] = [idsOf(removed, 'files'), idsOf(removed, 'users')];
  if (files.length > 0) await store.hooks.onFilesRemoved?.(files);
  if (users.length > 0) await store.hooks.afterUsersChanged?.(users);
}

/**
 * Runs one statement if that can decide, else a transaction. Returns the removed records that others
 * must learn of: the caller runs the hooks after the commit.
 *
 * @param tx default: a transaction of its own
 */
export async function removeIn(
  store: Store,
  access: AccessContext,
  request: RemoveRequest,
  tx?: Transaction,
): Promise<RecordsByCollection> {
  let writer = statementWriter(store, access, tx);
  try {
    writer = await inTenantOf(writer, request.id, 'delete');
    const { collection } = access;
    const { access: permitted, tenant } = writer;
    const needsTurn = takesTurnToDelete(store, collection);
    const placed = () => ({
      collection,
      id: request.id,
      mayWrite: permitted.permit(collection.name, 'delete').lookingUp().where(STORED),
    });
    // A statement that waits for the row sees the records that refer to it as they were before.
    const mayBeOne = !readsReferrers(collection);
    const isWhole = tx === undefined && tenantKeyOf(collection) === undefined;
    const turn = needsTurn && mayBeOne && isWhole ? turnOf(writer, placed()) : undefined;
    const isOneStatement = mayBeOne && (!needsTurn || turn !== undefined);
    if (isOneStatement && (await removeInOneStatement(writer, request, { needsTurn, turn }))) return NOTHING_ELSE;
    const inTransaction = async (own: Transaction) => {
      const inside = { store, q: own, access: permitted, tenant };
      const isInTurn = !needsTurn || (await takeTurn(inside, placed()));
      const isTried = isOneStatement || !mayBeOne;
      if (!isTried && (await removeInOneStatement({ ...writer, ...inside }, request, { needsTurn })))
        return NOTHING_ELSE;
      return removeInTransaction(inside, own, { ...request, isInTurn });
    };
    return tx ? await inTransaction(tx) : await store.transaction(inTransaction);
  } catch (error) {
    if (!(error instanceof StoreError && error.kind === 'foreign_key')) throw ownersRefusal(error, access.collection);
    // The transaction of several writes takes no statement any more.
    throw stillReferenced(tx === undefined ? await explained(writer, request.id) : []);
  }
}

/** The refusal holds, also where its reasons cannot be read in time. */
const explained = (writer: StatementWriter, id: string): Promise<readonly string[]> =>
  blockingReferences(writer, id).catch(() => []);

const NOTHING_ELSE: RecordsByCollection = new Map();

export const idsOf = (records: RecordsByCollection, collection: string): readonly string[] => [
  ...(records.get(collection) ?? []),
];

interface TurnToDelete {
  readonly needsTurn: boolean;
  /** Undefined: the transaction has asked for the turn before. */
  readonly turn?: Sql | undefined;
}

/** False: nothing was deleted, or one statement cannot decide; the transaction finds out why. */
async function removeInOneStatement(
  writer: StatementWriter,
  request: RemoveRequest,
  { needsTurn, turn }: TurnToDelete,
): Promise<boolean> {
  const { store, access } = writer;
  const { collection } = access;
  if (!collection.countsChanges || isFollowed(store.schema, collection.name)) return false;
  const accepted = await acceptedCounts(writer, request);
  if (accepted === undefined) return false;
  const permit = access.permit(collection.name, 'delete');
  const isDivided = tenantKeyOf(collection) !== undefined;
  const key = recordKeyOf(collection);
  const id = isDivided ? sql`${key.param(request.id)}` : keptIdIn(collection, key.of(STORED));
  const unkept = keptNowhere(id, cascadingFrom(store.schema, collection.name));
  // A statement on a divided collection reads no table of the service.
  const service = 'inTransaction' in writer.q ? writer.q : store.db;
  if (isDivided && (await service.rows(sql`SELECT 1 WHERE ${unkept}`)).length === 0) return false;
  const conditions = [
    key.is(STORED, request.id),
    permit.lookingUp().where(STORED),
    ...(isDivided ? [] : [unkept]),
    ...(permit.consultsOthers ? [versionUnchanged(writer, request.id)] : []),
    ...(needsTurn ? [hasTurn(turnName(collection.name, request.id))] : []),
    ...accepted.map((count) => hasCount(collection, count)),
  ];
  const statement = sql`
    DELETE FROM ${scopeOf(writer)
      .from(collection.name, STORED)
      .where(...conditions)}
    RETURNING 1`;
  const deleted = await sendWrite(writer, statement, { id: request.id, isNew: false, turn });
  return deleted.length > 0;
}

async function removeInTransaction(
  reading: Reading,
  tx: Transaction,
  { id, ifVersion, isInTurn }: RemoveRequest & { readonly isInTurn: boolean },
): Promise<RecordsByCollection> {
  const { store, access } = reading;
  const { name } = access.collection;
  const permit = access.permit(name, 'delete');
  const locked = await lockRow(reading, {
    collection: name,
    id,
    conditions: [permit.lookingUp().where(STORED)],
    consultsOthers: permit.consultsOthers,
    strength: 'UPDATE',
    isOpen: false,
  });
  const message = access.denialMessage?.(name, 'delete');
  if (locked === undefined) throw (await isReadableElsewhere(reading, id)) ? forbidden(message) : notFound();
  if (!locked.holds[0] || !isInTurn) throw locked.isReadable ? forbidden(message) : notFound();
  if (ifVersion?.includes(locked.version) === false) throw changedSince();
  if (tenantKeyOf(access.collection) === undefined) await store.prepareForEveryTenant(tx);
  const kept = await collectionsKept(tx, [name, ...cascadingFrom(store.schema, name)]);
  const found = await recordsGoingWith(reading, id, kept);
  const going = found.ids;
  await requireUnreferenced(reading, id, going);
  if (kept.length > 0)
    await forgetContents(
      tx,
      [...going].flatMap(([from, ids]) =>
        Array.from(ids, (gone) => keptIdOf(store.schema.collections.get(from)!, gone)),
      ),
    );
  const users = idsOf(going, 'users');
  if (users.length > 0) {
    await store.hooks.onUsersDeleted?.({ ids: users, cause: { collection: name, id }, by: actorOf(access) }, tx);
  }
  for (const { collection, rows, statement } of updatesToReferrers(reading, found))
    await recordingChanges(reading, { collection, rows }, () => tx.run(statement)).catch((error: unknown) => {
      throw ownersRefusal(error, collection);
    });
  await keepGoing(reading, tx, found);
  const isRecord = recordKeyOf(access.collection).is(STORED, id);
  const deleted = await tx.run(sql`DELETE FROM ${scopeOf(reading).stored(name, STORED).where(isRecord)}`);
  // A trigger of its owner, or row security, keeps the row.
  if (deleted === 0) throw locked.isReadable ? forbidden() : notFound();
  await deleteLeft(reading, going);
  return going;
}

/** Keeps the records and their history where no trigger does. */
async function keepGoing({ store, access }: Reading, tx: Transaction, { ids, tenants }: GoingRecords): Promise<void> {
  for (const [collection, own] of tenants)
    for (const tenant of own) {
      const rows = { collection, ids: [...ids.get(collection)!], tenant };
      await keepRows(tx, store.schema, { ...rows, now: access.now });
      await recordDeletion({ store, q: tx }, rows);
    }
}

interface ReferrersUpdate {
  readonly collection: Collection;
  /** The text that follows FROM: the rows `t` that the statement changes. */
  readonly rows: Sql;
  readonly statement: Sql;
}

/**
 * Losing a member or a reference is a change of a record, which the database's own SET NULL and
 * CASCADE would not count.
 */
function* updatesToReferrers({ store, access, tenant }: Reading, going: GoingRecords): Iterable<ReferrersUpdate> {
  for (const collection of store.schema.collections.values()) {
    for (const relation of collection.relations.values()) {
      const ids = going.ids.get(relation.collection);
      if (ids === undefined || ids.size === 0 || !isShownAsNone(relation)) continue;
      // The role of the service has no right to change the table of another program.
      if (!takesWrite(collection, 'update')) continue;
      const isDivided = tenantKeyOf(collection) !== undefined;
      const tenants = isDivided ? going.tenants.get(relation.collection) : undefined;
      for (const scope of tenantScopes(store, tenants ?? (tenant === undefined ? [] : [tenant]))) {
        const rows = scope.stored(collection.name, 't');
        const referrers = {
          rows,
          collection,
          targets: recordKeyIn(store.schema, relation.collection).list([...ids]),
          key: recordKeyOf(collection),
          now: access.now,
        };
        // A table that does not count changes has nothing to note of its members.
        if (relation.kind === 'many_to_many' && isTouched(collection)) yield touchOwners(referrers, relation);
        if (relation.kind === 'belongs_to' && !relation.isKept) yield clearReference(referrers, relation);
      }
    }
  }
}

/** A record without a tenant can be referenced in every tenant; others only in their own. */
function tenantScopes(store: Store, tenants: Iterable<string>): readonly Scope[] {
  const scopes = Array.from(tenants, (tenant) => scopeOf({ store, tenant }));
  return scopes.length === 0 ? [everyTenant(store.schema)] : scopes;
}

interface Referrers {
  /** The records `t`. */
  readonly rows: ScopedRows;
  readonly collection: Collection;
  readonly targets: Param;
  readonly key: RecordKey;
  readonly now: string;
}

export function touchOwners({ rows, collection, targets, key, now }: Referrers, relation: ManyToMany): ReferrersUpdate {
  const { sourceColumn, targetColumn } = relation;
  const links = rows.related.links(relation, collection.name, 'l');
  const isLink = sql`l.${ident(sourceColumn)} = ${key.of('t')}`;
  const isGoing = sql`l.${ident(targetColumn)} = ANY(${targets})`;
  const holds = sql`EXISTS (SELECT 1 FROM ${links.where(isLink, isGoing)})`;
  const statement = sql`UPDATE ${rows.set(touched(collection, 't', now), holds)}`;
  return { collection, rows: rows.where(holds), statement };
}

function clearReference({ rows, collection, targets, now }: Referrers, relation: BelongsTo): ReferrersUpdate {
  const cleared = sql`${ident(relation.column)} = NULL`;
  const refers = sql`${idReferredTo('t', relation)} = ANY(${targets})`;
  const statement = sql`UPDATE ${rows.set([cleared, ...touched(collection, 't', now)], refers)}`;
  return { collection, rows: rows.where(refers), statement };
}
