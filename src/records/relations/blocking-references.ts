/** Names the references that block a delete, for a caller who may read one of the records that have them. */
import type { BelongsTo, Collection, Schema } from '../../schema/model/model.ts';
import { ident, type Sql, sql } from '../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import { recordKeyIn, recordKeyOf } from '../record-key.ts';
import { scopeOf } from '../scope.ts';
import { cascadesTo } from './cascades.ts';

/** A belongs_to that restricts the deletion of a record. */
interface BlockingReference {
  readonly collection: Collection;
  readonly relation: BelongsTo;
  /** The references by which the delete of a record cascades to the target, the nearest to the target first. */
  readonly path: readonly CascadeStep[];
}
interface CascadeStep {
  readonly collection: string;
  readonly relation: BelongsTo;
}

/** The references, one a sentence; empty if the caller may read no record that has one. */
export async function blockingReferences(reading: Reading, id: string): Promise<readonly string[]> {
  const { store, q, access } = reading;
  const scope = scopeOf(reading);
  const blocking = referencesTo(store.schema, access.collection.name).filter(
    ({ collection, relation, path }) =>
      [collection.name, ...path.map((step) => step.collection)].every((name) => scope.reaches(name)) &&
      [relation, ...path.map((step) => step.relation)].every(({ references }) => references === undefined),
  );
  const found = await Promise.all(
    blocking.map(async ({ collection, relation, path }) => {
      const isBlocking = sql`x.${ident(relation.column)} ${targets(reading, path, id)}`;
      const rows = await q.rows(sql`
        SELECT 1
          FROM ${scope.from(collection.name, 'x').where(isBlocking, readable(access, collection.name, 'x'))}
         LIMIT 1`);
      return rows.length > 0;
    }),
  );
  return blocking.filter((_, i) => found[i]).map(blockedInWords);
}

/** `= $1`, or the rows that the delete of the record cascades to. */
function targets(reading: Reading, path: readonly CascadeStep[], id: string): Sql {
  const [step, ...rest] = path;
  if (step === undefined) return sql`= ${recordKeyOf(reading.access.collection).param(id)}`;
  const alias = `p${path.length}`;
  const isGoing = sql`${ident(alias, step.relation.column)} ${targets(reading, rest, id)}`;
  return sql`IN (
    SELECT ${recordKeyIn(reading.store.schema, step.collection).of(alias)}
      FROM ${scopeOf(reading).from(step.collection, alias).where(isGoing)})`;
}

function blockedInWords({ collection, relation, path }: BlockingReference): string {
  const those = path.length === 0 ? 'this one' : `records of \`${path[0]!.collection}\` that it would delete`;
  return `records of \`${collection.name}\` still reference ${those}, by \`${relation.name}\``;
}

function referencesTo(schema: Schema, deleted: string): readonly BlockingReference[] {
  const paths = new Map<string, readonly CascadeStep[]>([[deleted, []]]);
  // The loop visits the elements that it adds, too.
  for (const [target, path] of paths) {
    for (const { collection, relation } of cascadesTo(schema, target)) {
      if (!paths.has(collection.name)) paths.set(collection.name, [{ collection: collection.name, relation }, ...path]);
    }
  }
  return [...schema.collections.values()].flatMap((collection) =>
    [...collection.relations.values()].flatMap((relation) => {
      const path = relation.kind === 'belongs_to' && relation.onDelete === 'restrict' && paths.get(relation.collection);
      return path ? [{ collection, relation, path }] : [];
    }),
  );
}
