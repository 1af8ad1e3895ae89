/**
 * `on_delete` of references that no foreign key is certain to follow, because another program owns a table of theirs. A
 * row that such a program writes meanwhile is not seen: its reference leads to a record that is gone.
 */
import { takesWrite } from '../../schema/model/model.ts';
import { type Sql, sql } from '../../sql.ts';
import type { Reading } from '../access-context.ts';
import { stillReferenced } from '../constraint-errors.ts';
import { recordKeyOf } from '../record-key.ts';
import { everyTenant } from '../scope.ts';
import { blockingReferences } from './blocking-references.ts';
import { type RecordsByCollection, refersTo, unfollowedReferences } from './cascades.ts';

/** Throws `still_referenced` if a record that stays has a reference with `restrict`. */
export async function requireUnreferenced(reading: Reading, id: string, going: RecordsByCollection): Promise<void> {
  const { store, q } = reading;
  for (const { collection, relation } of unfollowedReferences(store.schema)) {
    const ids = going.get(relation.collection);
    if (relation.onDelete !== 'restrict' || ids === undefined) continue;
    const refers = refersTo(store.schema, relation, [...ids]);
    const stays = sql`NOT (${recordKeyOf(collection).isAmong('x', [...(going.get(collection.name) ?? [])])})`;
    if (await isAny(reading, collection.name, [refers, stays]))
      throw stillReferenced(await blockingReferences({ ...reading, q }, id));
  }
}

/** Deletes the records of `cascade` that the database has left. */
export async function deleteLeft(reading: Reading, going: RecordsByCollection): Promise<void> {
  const { store, q } = reading;
  const cascading = unfollowedReferences(store.schema).filter(({ relation }) => relation.onDelete === 'cascade');
  // Records refer to those that were found before them.
  for (const [name, ids] of [...going].reverse()) {
    const collection = cascading.find((reference) => reference.collection.name === name)?.collection;
    if (collection === undefined || !takesWrite(collection, 'delete')) continue;
    const isGoing = recordKeyOf(collection).isAmong('x', [...ids]);
    // The role may have no right to delete what a foreign key has deleted.
    if (!(await isAny(reading, name, [isGoing]))) continue;
    await q.rows(sql`DELETE FROM ${everyTenant(store.schema).stored(name, 'x').where(isGoing)}`);
  }
}

async function isAny({ store, q }: Reading, collection: string, conditions: readonly Sql[]): Promise<boolean> {
  const rows = await q.rows(sql`
    SELECT 1
      FROM ${everyTenant(store.schema)
        .from(collection, 'x')
        .where(...conditions)}
     LIMIT 1`);
  return rows.length > 0;
}
