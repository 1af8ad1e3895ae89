/** A database in memory: its rows and links, and what is related to what. */
import type { Catalog, CatalogCollection, Related, Row } from '../../src/policy/types.ts';

/** A number, where the key of its collection is an int. */
export type Id = string;
/** Collection → rows; and link table → pairs of identifiers (source, target). */
export interface Data {
  readonly rows: ReadonlyMap<string, readonly Row[]>;
  readonly links: ReadonlyMap<string, readonly (readonly [Id, Id])[]>;
}
/** The record with the time of a change, if records of its collection have one. */
export function touchedAt({ fields }: CatalogCollection, row: Row, now: string): Row {
  if (!fields.has('updated_at')) return row;
  const before = String(row.updated_at ?? '');
  return { ...row, updated_at: before > now ? before : now };
}
/** Answers from memory; every list in the order of the rows. */
export function relatedOf(catalog: Catalog, data: Data): Related {
  const one = new Map<string, Map<Id, Row>>();
  for (const [name, rows] of data.rows) one.set(name, new Map(rows.map((row) => [String(row.id), row])));
  const many = new Map<string, Map<string, Map<Id, Row[]>>>();
  const put = (index: Map<Id, Row[]>, id: Id, row: Row) => {
    const list = index.get(String(id));
    if (list) list.push(row);
    else index.set(String(id), [row]);
  };
  for (const [name, collection] of catalog.collections) {
    const ofCollection = new Map<string, Map<Id, Row[]>>();
    many.set(name, ofCollection);
    for (const relation of collection.relations.values()) {
      if (relation.kind === 'belongs_to') continue;
      const index = new Map<Id, Row[]>();
      ofCollection.set(relation.name, index);
      if (relation.kind === 'many_to_many') {
        for (const [source, target] of data.links.get(relation.linkTable) ?? []) {
          // A link of another owner's table may lead to a record that is gone.
          const member = one.get(relation.collection)!.get(String(target));
          if (member !== undefined) put(index, source, member);
        }
      } else {
        for (const row of data.rows.get(relation.collection) ?? [])
          if (row[relation.via] != null) put(index, row[relation.via] as Id, row);
      }
    }
  }
  const nothing: readonly Row[] = [];
  return {
    one: (collection, id) => one.get(collection)!.get(String(id)),
    many: (collection, relation, id) => many.get(collection)!.get(relation)!.get(String(id)) ?? nothing,
  };
}
