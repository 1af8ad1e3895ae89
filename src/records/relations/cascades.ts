/**
 * Finds the records that a delete removes or changes. The database's own cascades delete them, but the
 * bytes of files must go too, and records that lose a reference or a member are changed. They are
 * found before the delete, level by level, from locked rows: no new row can reference a locked
 * row by a foreign key, so these are the rows that the cascades will delete. `unfollowed-references.ts` deletes those
 * that no foreign key follows.
 */
import { memoizedBy } from '../../memoized.ts';
import {
  type BelongsTo,
  type Collection,
  type Relation,
  type Schema,
  takesWrite,
  tenantKeyOf,
} from '../../schema/model/model.ts';
import { empty, ident, raw, type Sql, sql } from '../../sql.ts';
import type { Reading } from '../access-context.ts';
import { recordKeyIn, recordKeyOf } from '../record-key.ts';
import { everyTenant, scopeOf } from '../scope.ts';

/** A reference with `on_delete: cascade`. */
interface CascadingReference {
  readonly collection: Collection;
  readonly relation: BelongsTo;
}

interface CascadedRows {
  readonly collection: string;
  readonly ids: readonly string[];
  /** The tenant of the rows; undefined: unknown, or they have none. */
  readonly tenant: string | undefined;
}

/** Ids by collection. */
export type RecordsByCollection = ReadonlyMap<string, ReadonlySet<string>>;

export interface GoingRecords {
  readonly ids: RecordsByCollection;
  /** The tenants of the records, of collections that are divided by tenant. */
  readonly tenants: RecordsByCollection;
}

/**
 * The ids, by collection, of a record that this transaction has locked and of all that its delete
 * cascades to. Leaves out collections whose deletions have no further effect, but for `also`.
 */
export async function recordsGoingWith(reading: Reading, id: string, also: readonly string[]): Promise<GoingRecords> {
  const { schema } = reading.store;
  const followed = collectionsToFollow(schema, also);
  const going = new Map<string, Set<string>>([[reading.access.collection.name, new Set()]]);
  const tenants = new Map<string, Set<string>>();
  const waiting: CascadedRows[] = [{ collection: reading.access.collection.name, ids: [id], tenant: reading.tenant }];
  for (let rows = waiting.shift(); rows !== undefined; rows = waiting.shift()) {
    // Rows may reference one another in a ring.
    const known = going.get(rows.collection) ?? new Set();
    going.set(rows.collection, known);
    const ids = rows.ids.filter((found) => !known.has(found));
    if (ids.length === 0) continue;
    for (const found of ids) known.add(found);
    if (rows.tenant !== undefined && tenantKeyOf(schema.collections.get(rows.collection)!) !== undefined)
      tenants.set(rows.collection, (tenants.get(rows.collection) ?? new Set()).add(rows.tenant));
    for (const reference of cascadesTo(schema, rows.collection)) {
      if (!followed.has(reference.collection.name)) continue;
      waiting.push(...(await lockReferring(reading, reference, { ...rows, ids })));
    }
  }
  return { ids: going, tenants };
}

/**
 * True if deleting a record of the collection changes more than rows that the database deletes by
 * itself: a file, a user, a record that shows it, or one that is kept.
 */
export const isFollowed = (schema: Schema, collection: string): boolean => followedOf(schema).has(collection);

const followedOf = memoizedBy((schema: Schema) => collectionsToFollow(schema));

/**
 * Collections that can cascade to a file, a user, a record that others show as a member or by a
 * nullable reference, or one that a statement of the service keeps.
 */
function collectionsToFollow(schema: Schema, also: readonly string[] = []): ReadonlySet<string> {
  const shown = [...schema.collections.values()].flatMap((collection) =>
    [...collection.relations.values()].filter(isShownAsNone).map((relation) => relation.collection),
  );
  const kept = [...schema.collections.values()].filter(keepsByStatements).map(({ name }) => name);
  const ofOwners = unfollowedReferences(schema).flatMap(({ collection, relation }) => [
    relation.collection,
    ...(relation.onDelete === 'cascade' ? [collection.name] : []),
  ]);
  const followed = new Set(['files', 'users', ...shown, ...kept, ...ofOwners, ...also]);
  // The loop visits the elements that it adds, too.
  for (const name of followed) {
    for (const relation of cascadesOf(schema.collections.get(name))) followed.add(relation.collection);
  }
  return followed;
}

/** A reference of a table that another program owns, or to one: no foreign key is certain to follow it. */
export interface UnfollowedReference {
  readonly collection: Collection;
  readonly relation: BelongsTo;
}

/** References that delete or hold back a record; the service clears all others itself. */
export const unfollowedReferences: (schema: Schema) => readonly UnfollowedReference[] = memoizedBy((schema) =>
  [...schema.collections.values()].flatMap((collection) =>
    [...collection.relations.values()].flatMap((relation) => {
      if (relation.kind !== 'belongs_to' || relation.onDelete === 'set_null') return [];
      const isFollowed = collection.managed && schema.collections.get(relation.collection)!.managed;
      return isFollowed ? [] : [{ collection, relation }];
    }),
  ),
);

/** The service itself keeps the deleted records or their history, in place of triggers. */
const keepsByStatements = (collection: Collection): boolean =>
  tenantKeyOf(collection) !== undefined && (collection.softDelete !== undefined || collection.history !== undefined);

/** The other collections that a delete can cascade to, at any depth. */
export const cascadingFrom = (schema: Schema, collection: string): readonly string[] =>
  cascadingOf(schema).get(collection) ?? [];

const cascadingOf = memoizedBy(
  (schema: Schema) => new Map([...schema.collections.keys()].map((name) => [name, reachedFrom(schema, name)])),
);

function reachedFrom(schema: Schema, collection: string): readonly string[] {
  const reached = new Set([collection]);
  // The loop visits the elements that it adds, too.
  for (const name of reached) for (const next of cascadesTo(schema, name)) reached.add(next.collection.name);
  return [...reached].slice(1);
}

/** True if the record that has the relation stays, and changes, when the related one is deleted. */
export const isShownAsNone = (relation: Relation): boolean =>
  relation.kind === 'many_to_many' || (relation.kind === 'belongs_to' && relation.onDelete === 'set_null');

export function cascadesTo(schema: Schema, target: string): readonly CascadingReference[] {
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

/** Locks the referring rows, tenant by tenant. */
async function lockReferring(
  reading: Reading,
  reference: CascadingReference,
  { ids, tenant }: CascadedRows,
): Promise<readonly CascadedRows[]> {
  const { collection } = reference;
  const isKnown = scopeOf({ store: reading.store, tenant }).reaches(collection.name);
  const tenants = !isKnown ? await tenantsReferring(reading, reference, ids) : [tenant];
  const found: CascadedRows[] = [];
  for (const one of tenants) {
    const locked = await lockReferringIn({ ...reading, tenant: one }, reference, ids);
    found.push({ collection: collection.name, ids: locked, tenant: one });
  }
  return found;
}

/** Locks in the order of the ids, so that two deletes take their locks in one order. */
async function lockReferringIn(
  reading: Reading,
  { collection, relation }: CascadingReference,
  ids: readonly string[],
): Promise<readonly string[]> {
  const { schema } = reading.store;
  const refers = refersTo(schema, relation, ids);
  const key = recordKeyOf(collection).of('x');
  const isLockable = !collection.hasNoRowLocks && takesWrite(collection, 'update');
  const rows = await reading.q.rows(sql`
    SELECT ${key}
      FROM ${scopeOf(reading).lockable(collection.name, 'x').where(refers)}
     ORDER BY ${key}
     ${isLockable ? raw('FOR UPDATE') : empty}`);
  return rows.map(([id]) => id!);
}

/** The row `x` refers to one of the records. */
export const refersTo = (schema: Schema, { collection, column }: BelongsTo, ids: readonly string[]): Sql =>
  sql`x.${ident(column)} = ANY(${recordKeyIn(schema, collection).list(ids)})`;

/** The tenants of the rows that reference a record without a tenant. */
async function tenantsReferring(
  { store, q }: Reading,
  { collection, relation }: CascadingReference,
  ids: readonly string[],
): Promise<readonly string[]> {
  const { column } = tenantKeyOf(collection)!;
  if (relation.column === column) return ids.toSorted();
  const refers = refersTo(store.schema, relation, ids);
  const rows = await q.rows(sql`
    SELECT DISTINCT x.${ident(column)}
      FROM ${everyTenant(store.schema).from(collection.name, 'x').where(refers)}
     ORDER BY 1`);
  return rows.map(([tenant]) => tenant!);
}
