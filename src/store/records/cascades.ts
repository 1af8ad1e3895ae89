/**
 * Which files go with a record: the database's own cascades delete their rows, and somebody has to know whose bytes to remove. Found before the delete,
 * level by level, from rows that are locked: nobody can hang a further row on a row that is locked, so what is found is what the cascades will delete.
 */
import type { BelongsTo, Collection, Schema } from '../../schema/model.ts';
import { ident, param, raw, sql } from '../../sql.ts';
import type { Reading } from './access-context.ts';

/** A reference whose record goes with the one that it names. */
interface CascadingReference {
  readonly collection: Collection;
  readonly relation: BelongsTo;
}

interface PendingRows {
  readonly collection: string;
  readonly ids: readonly string[];
}

/** The identifiers of the files that go when the record does, which this transaction has locked; itself, where it is a file. */
export async function filesGoingWith(
  reading: Reading,
  { collection, id }: { readonly collection: string; readonly id: string },
): Promise<readonly string[]> {
  const { schema } = reading.store;
  const leading = collectionsCascadingToFiles(schema);
  const seen = new Map([...leading].map((name) => [name, new Set<string>()]));
  const waiting: PendingRows[] = leading.has(collection) ? [{ collection, ids: [id] }] : [];
  for (let going = waiting.shift(); going !== undefined; going = waiting.shift()) {
    // Rows may hang on one another in a ring.
    const known = seen.get(going.collection)!;
    const ids = going.ids.filter((found) => !known.has(found));
    if (ids.length === 0) continue;
    for (const found of ids) known.add(found);
    for (const hanging of hangingOn(schema, going.collection)) {
      if (!leading.has(hanging.collection.name)) continue;
      waiting.push({ collection: hanging.collection.name, ids: await lockHanging(reading, hanging, ids) });
    }
  }
  return [...(seen.get('files') ?? [])];
}

/** Collections a record of which may take a file with it, `files` among them. */
function collectionsCascadingToFiles(schema: Schema): ReadonlySet<string> {
  const leading = new Set(['files']);
  // What is added while this goes on is gone through too.
  for (const name of leading) {
    for (const relation of cascadesOf(schema.collections.get(name))) leading.add(relation.collection);
  }
  return leading;
}

function hangingOn(schema: Schema, target: string): readonly CascadingReference[] {
  return [...schema.collections.values()].flatMap((collection) =>
    cascadesOf(collection)
      .filter((relation) => relation.collection === target)
      .map((relation) => ({ collection, relation })),
  );
}

function cascadesOf(collection: Collection | undefined): readonly BelongsTo[] {
  return [...(collection?.relations.values() ?? [])].filter(
    (relation): relation is BelongsTo => relation.kind === 'belongs_to' && relation.onDelete === 'cascade',
  );
}

/** In the order of their identifiers, so that two deletes take their locks in one order. */
async function lockHanging(
  { store, q }: Reading,
  { collection, relation }: CascadingReference,
  ids: readonly string[],
): Promise<readonly string[]> {
  const rows = await q.rows(
    sql`SELECT x.id FROM ${store.from(collection.name, raw('x'))} WHERE x.${ident(relation.column)} = ANY(${param('uuid[]', ids)}) ORDER BY x.id FOR UPDATE`,
  );
  return rows.map(([id]) => id!);
}
