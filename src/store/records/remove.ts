/** The end of a record. What hangs on it goes, stays or refuses as `on_delete` says. */
import type { BelongsTo, Collection, ManyToMany } from '../../schema/model.ts';
import { ident, param, type Sql, sql } from '../../sql.ts';
import { StoreError, type Transaction } from '../database/contract.ts';
import { forbidden, notFound } from '../refusal.ts';
import { type AccessContext, type Reading, requirePermit, type Store } from './access-context.ts';
import { filesGoingWith } from './cascades.ts';
import { stillReferenced } from './constraint-errors.ts';
import { assertVersion, consultsOthers, lockRow } from './locked-row.ts';
import { tableOf } from './record-shape.ts';

export interface RemoveRequest {
  readonly id: string;
  /** The versions of the record that may be deleted; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
}

export async function remove(store: Store, ask: AccessContext, request: RemoveRequest): Promise<void> {
  requirePermit(ask, 'delete');
  const files = await removed(store, ask, request);
  if (files.length > 0) await store.hooks.onFilesRemoved?.(files);
}

/** The files that went. */
async function removed(store: Store, ask: AccessContext, request: RemoveRequest): Promise<readonly string[]> {
  try {
    return await store.db.transaction((tx) => removeIn({ store, q: tx, ask }, tx, request));
  } catch (error) {
    throw error instanceof StoreError && error.kind === 'foreign_key' ? stillReferenced() : error;
  }
}

async function removeIn(
  reading: Reading,
  tx: Transaction,
  { id, ifVersion }: RemoveRequest,
): Promise<readonly string[]> {
  const { store, ask } = reading;
  const { name, kind } = ask.collection;
  const permit = ask.permit(name, 'delete');
  const conditions = [permit.where('t')];
  const locked = await lockRow(reading, {
    collection: name,
    id,
    conditions,
    other: consultsOthers(permit),
    strength: 'UPDATE',
  });
  if (locked === undefined) throw notFound();
  if (!locked.holds[0]) throw locked.isReadable ? forbidden() : notFound();
  assertVersion(locked.version, ifVersion);
  if (kind === 'users') await store.hooks.onUserChanged?.(id, tx);
  const files = await filesGoingWith(reading, { collection: name, id });
  for (const statement of touches(store, ask, id)) await tx.run(statement);
  await tx.run(sql`DELETE FROM ${tableOf(ask.collection)} WHERE id = ${param('uuid', id)}`);
  return files;
}

/** The records that lose a member or a reference are changed by it, and say so. */
function* touches(store: Store, { collection: target, now }: AccessContext, id: string): Iterable<Sql> {
  for (const collection of store.schema.collections.values()) {
    for (const relation of collection.relations.values()) {
      if (relation.collection !== target.name) continue;
      if (relation.kind === 'many_to_many') yield touchLinked({ collection, relation, id, now });
      if (relation.kind === 'belongs_to' && relation.onDelete === 'set_null')
        yield letGo({ collection, relation, id, now });
    }
  }
}

interface Touch<R> {
  readonly collection: Collection;
  readonly relation: R;
  readonly id: string;
  readonly now: string;
}

const stamp = (now: string): Sql => sql`updated_at = greatest(updated_at, ${param('timestamptz', now)})`;

function touchLinked({ collection, relation, id, now }: Touch<ManyToMany>): Sql {
  const { linkTable, sourceColumn, targetColumn } = relation;
  return sql`UPDATE ${tableOf(collection)} SET ${stamp(now)} WHERE id IN (SELECT l.${ident(sourceColumn)} FROM ${ident(linkTable)} AS l WHERE l.${ident(targetColumn)} = ${param('uuid', id)})`;
}

function letGo({ collection, relation, id, now }: Touch<BelongsTo>): Sql {
  const column = ident(relation.column);
  return sql`UPDATE ${tableOf(collection)} SET ${column} = NULL, ${stamp(now)} WHERE ${column} = ${param('uuid', id)}`;
}
