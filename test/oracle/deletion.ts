/** The effect of a delete on the database by the definition of `on_delete`; shares no code with the store. */
import type { Catalog, CatalogBelongsTo, Row } from '../../src/policy/types.ts';
import { type Data, type Id, touchedAt } from './database.ts';

interface Stored {
  readonly catalog: Catalog;
  readonly data: Data;
}
interface Reference {
  readonly collection: string;
  readonly relation: DeclaredReference;
}
/** The schema says more of a reference than policies need. */
type DeclaredReference = CatalogBelongsTo & { readonly onDelete: 'cascade' | 'restrict' | 'set_null' };

/** The ids that go, by collection. */
type Going = ReadonlyMap<string, ReadonlySet<Id>>;

/** The record, and all that cascade from it. */
export function goingWith({ catalog, data }: Stored, record: { readonly collection: string; readonly id: Id }): Going {
  const going = new Map([...data.rows.keys()].map((name) => [name, new Set<Id>()] as const));
  const waiting = [record];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const known = going.get(next.collection)!;
    if (known.has(next.id)) continue;
    known.add(next.id);
    for (const { collection, relation } of referencesOf(catalog)) {
      if (relation.onDelete !== 'cascade' || relation.collection !== next.collection) continue;
      for (const row of data.rows.get(collection)!)
        if (row[relation.name] === next.id) waiting.push({ collection, id: row.id as Id });
    }
  }
  return going;
}

/** True if a remaining record prevents the deletion of one of them. */
export const isHeldBack = (stored: Stored, going: Going): boolean => restrictions(stored, going).includes('stays');

/** True if one of them prevents the deletion of another: the database decides their order. */
export const dependsOnOrder = (stored: Stored, going: Going): boolean => restrictions(stored, going).includes('goes');

/** For each reference with `restrict` to a deleted record: its own record stays or goes. */
function restrictions({ catalog, data }: Stored, going: Going): readonly ('stays' | 'goes')[] {
  return referencesOf(catalog).flatMap(({ collection, relation }) => {
    if (relation.onDelete !== 'restrict') return [];
    const holding = data.rows.get(collection)!.filter((row) => isGoing(going, relation, row));
    return holding.map(({ id }) => (going.get(collection)!.has(id as Id) ? 'goes' : 'stays'));
  });
}

/** The database after it. Losing a reference or a member is a change of a record. */
export function without({ catalog, data }: Stored, going: Going, now: string): Data {
  const rows = new Map<string, readonly Row[]>();
  for (const [collection, all] of data.rows) {
    const staying = all.filter(({ id }) => !going.get(collection)!.has(id as Id));
    rows.set(
      collection,
      staying.map((row) => withoutThem({ catalog, data }, { collection, row, going, now })),
    );
  }
  const links = new Map(data.links);
  for (const [name, { relations }] of catalog.collections) {
    for (const relation of relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const [sources, targets] = [going.get(name)!, going.get(relation.collection)!];
      const pairs = data.links.get(relation.linkTable)!;
      links.set(
        relation.linkTable,
        pairs.filter(([source, target]) => !sources.has(source) && !targets.has(target)),
      );
    }
  }
  return { rows, links };
}

interface Staying {
  readonly collection: string;
  readonly row: Row;
  readonly going: Going;
  readonly now: string;
}

function withoutThem({ catalog, data }: Stored, { collection, row, going, now }: Staying): Row {
  const lost: string[] = [];
  let losesMember = false;
  for (const relation of catalog.collections.get(collection)!.relations.values()) {
    if (relation.kind === 'belongs_to' && isGoing(going, relation, row)) lost.push(relation.name);
    if (relation.kind !== 'many_to_many') continue;
    const targets = going.get(relation.collection)!;
    losesMember ||= data.links
      .get(relation.linkTable)!
      .some(([source, target]) => source === row.id && targets.has(target));
  }
  if (lost.length === 0 && !losesMember) return row;
  const cleared = { ...row, ...Object.fromEntries(lost.map((name) => [name, null])) };
  return touchedAt(catalog.collections.get(collection)!, cleared, now);
}

const isGoing = (going: Going, { collection, name }: CatalogBelongsTo, row: Row): boolean =>
  row[name] != null && going.get(collection)!.has(row[name] as Id);

const referencesOf = ({ collections }: Catalog): readonly Reference[] =>
  [...collections].flatMap(([collection, { relations }]) =>
    [...relations.values()].flatMap((relation) =>
      relation.kind === 'belongs_to' ? [{ collection, relation: relation as DeclaredReference }] : [],
    ),
  );
