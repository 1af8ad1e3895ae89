/** The effect of a restore on the database by the definition of `soft_delete`; shares no code with the store. */
import type { Catalog, Checked, PolicyRequest, Row } from '../../src/policy/types.ts';
import { type Data, type Id, relatedOf, touchedAt } from './database.ts';
import { interpret } from './interpret.ts';
import { failsCheck, isUnique, type Standing } from './judge.ts';

export interface DeletedRecord {
  readonly collection: string;
  /** With the time of the deletion. */
  readonly row: Row;
  /** The pairs of each link table that the record had. */
  readonly links: ReadonlyMap<string, readonly (readonly [Id, Id])[]>;
}
interface DeletedStanding {
  /** The catalog and the data in which the records of the collection are its deleted ones. */
  readonly catalog: Catalog;
  readonly data: Data;
  readonly request: PolicyRequest;
  readonly rules: readonly { readonly meant: Checked }[];
}

/** True if a rule for `restore` finds the deleted record. */
export function isRestorable(record: Row, { catalog, data, request, rules }: DeletedStanding): boolean {
  const related = relatedOf(catalog, data);
  return rules.some(({ meant }) => interpret(meant, { record, related, request }) === true);
}

/** The database after the restore; undefined where a key, a reference or a check prevents it. */
export function restored({ collection, row, links }: DeletedRecord, standing: Standing): Data | undefined {
  const { catalog, data, request } = standing;
  const { deleted_at: _, ...stored } = row;
  const record: Row = { ...stored, updated_at: request.now };
  const own = data.rows.get(collection)!;
  if (own.some(({ id }) => id === record.id)) return undefined;
  const rows = new Map(data.rows).set(collection, [...own, record]);
  const exists = (target: string, id: unknown): boolean => rows.get(target)!.some((each) => each.id === id);
  for (const relation of catalog.collections.get(collection)!.relations.values()) {
    if (relation.kind !== 'belongs_to' || record[relation.name] === null) continue;
    if (!exists(relation.collection, record[relation.name])) return undefined;
  }
  const all = new Map(data.links);
  for (const [holder, { relations }] of catalog.collections)
    for (const relation of relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const back = (links.get(relation.linkTable) ?? []).filter(
        ([source, target]) => exists(holder, source) && exists(relation.collection, target),
      );
      all.set(relation.linkTable, [...(all.get(relation.linkTable) ?? []), ...back]);
    }
  for (const [holder, { relations }] of catalog.collections)
    for (const relation of relations.values()) {
      if (relation.kind !== 'many_to_many' || relation.collection !== collection) continue;
      const pairs = all.get(relation.linkTable)!;
      const owners = new Set(pairs.flatMap(([source, target]) => (target === record.id ? [source] : [])));
      // Getting a member back is a change of its owner.
      const touch = (row: Row): Row => touchedAt(catalog.collections.get(holder)!, row, request.now);
      rows.set(
        holder,
        rows.get(holder)!.map((row) => (owners.has(row.id as Id) ? touch(row) : row)),
      );
    }
  const after = { ...standing, data: { rows, links: all } };
  return isUnique(after) && !failsCheck(collection, record, after) ? after.data : undefined;
}
