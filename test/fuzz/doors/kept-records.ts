/** The tables beside those of records: the deleted records, and the changes of each. */
import type { Catalog, Row } from '../../../src/policy/types.ts';
import type { Collection, Schema } from '../../../src/schema/model/model.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { goingWith } from '../../oracle/deletion.ts';
import type { Change } from '../../oracle/history.ts';
import type { DeletedRecord } from '../../oracle/restored.ts';
import type { Stocked } from './doors-world.ts';
import { asId, idColumn } from './keyed-schema.ts';

type Links = Readonly<Record<string, readonly string[]>>;

export async function readDeleted(
  { doors, schema, db }: Stocked,
  collection: string,
): Promise<readonly DeletedRecord[]> {
  const { sql, ident, raw } = doors.compiler.sql;
  const deleted = doors.deletedRecordsOf(db, schema)(collection)!;
  const keyed = schema.collections.get(collection)!;
  const store = new doors.Store(db, deleted.schema);
  const rows = await doors.system.findSystem(store, db, { collection, where: raw('TRUE') });
  const kept = await db.rows(
    sql`SELECT ${idColumn({ doors, collection: keyed })}, ${ident('_links')}::text FROM ${ident(deleted.collection.table)}`,
  );
  const linksOf = new Map(kept.map(([id, links]) => [asId(keyed, id!), JSON.parse(links!) as Links] as const));
  return rows.map((row) => ({ collection, row, links: pairsOf(row.id as Id, linksOf.get(row.id as Id)!, schema) }));
}

/** A table of links has the record as a source, as a target, or as both. */
function pairsOf(id: Id, links: Links, { collections }: Schema): DeletedRecord['links'] {
  const pairs = new Map<string, (readonly [Id, Id])[]>();
  for (const holder of collections.values())
    for (const relation of holder.relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const { linkTable, sourceColumn, targetColumn } = relation;
      const idsIn = (column: string, of: Collection): readonly Id[] =>
        (links[`${linkTable}.${column}`] ?? []).map((other) => asId(of, other));
      const targets = idsIn(sourceColumn, collections.get(relation.collection)!);
      const sources = idsIn(targetColumn, holder).filter((other) => other !== id);
      pairs.set(linkTable, [
        ...targets.map((other) => [id, other] as const),
        ...sources.map((other) => [other, id] as const),
      ]);
    }
  return pairs;
}

/** The catalog and the data in which the records of the collection are its deleted ones, which have no members. */
export function deletedWorld(
  { doors, schema, db }: Stocked,
  collection: string,
  deleted: readonly DeletedRecord[],
  { rows, links }: Data,
): { readonly catalog: Catalog; readonly data: Data } {
  const seen = doors.deletedRecordsOf(db, schema)(collection)!.schema;
  const collections = [...seen.collections].map(([name, each]) => {
    const relations = [...each.relations].filter(([, { kind }]) => kind !== 'many_to_many');
    return [name, { ...each, relations: new Map(relations) }] as const;
  });
  const own = deleted.map(({ row }) => row);
  const catalog: Catalog = { ...seen, collections: new Map(collections) };
  return { catalog, data: { rows: new Map(rows).set(collection, own), links } };
}

/** The part of a record that a deletion keeps, as a text: its own values, and its links to records that stay. */
export function keptText(catalog: Catalog, before: Data, { collection, row, links }: DeletedRecord): string {
  const id = row.id as Id;
  const { relations } = catalog.collections.get(collection)!;
  const going = [...goingWith({ catalog, data: before }, { collection, id }).values()];
  const isStaying = (other: Id): boolean => !going.some((ids) => ids.has(other));
  const values = Object.entries(row).filter(([name]) => !CHANGED_BY_DELETION.includes(name) && !relations.has(name));
  const pairs = [...links].flatMap(([table, all]) =>
    all
      .filter(([source, target]) => (source === id ? isStaying(target) : target === id && isStaying(source)))
      .map((pair) => `${table} ${pair.join('→')}`),
  );
  return JSON.stringify([values.sort(), pairs.sort()]);
}
/** Losing a reference or a member is a change of a record, also of one that goes with them. */
const CHANGED_BY_DELETION = ['deleted_at', 'updated_at'];

/** The changes of a record, the newest first, each state as policies see it. */
export async function readChanges(
  { doors, schema, db }: Stocked,
  collection: string,
  id: Id,
): Promise<readonly Change[]> {
  const { sql, ident, join, text, apiTime } = doors.compiler.sql;
  const shape = new doors.Store(db, schema).shape(collection);
  const columns = [...shape.storedColumns];
  const imageOf = (side: string) =>
    join(
      columns.map((column) => sql`${ident('h', side)} ->> ${text(column)}`),
      ', ',
    );
  const found = await db.rows(sql`
    SELECT h.seq::text, ${apiTime(sql`h.at`)}, h.by, h.before IS NOT NULL, h.after IS NOT NULL, ${imageOf('before')}, ${imageOf('after')}
      FROM bylaw_history AS h
     WHERE h.collection = ${text(collection)}
       AND h.record = ${text(String(id))}
     ORDER BY h.seq DESC`);
  /** A state has the time of the entry that wrote it. */
  const stateOf = (cells: readonly (string | null)[], at: string): Row => ({ ...shape.row(cells), updated_at: at });
  return found.map(([seq, at, by, hasBefore, hasAfter, ...cells], i) => ({
    entry: Number(seq),
    by: by ?? null,
    before: hasBefore === 't' ? stateOf(cells.slice(0, columns.length), found[i + 1]![1]!) : undefined,
    after: hasAfter === 't' ? stateOf(cells.slice(columns.length), at!) : undefined,
  }));
}

const stateText = (row: Row | undefined): string => {
  const { updated_at: _, ...rest } = row ?? {};
  return JSON.stringify(Object.entries(rest).sort());
};

/** True if each change begins where the one before it ended, and the last one ended with the stored record. */
export function isWhole(changes: readonly Change[], present: Row | undefined): boolean {
  let wanted = stateText(present);
  for (const { before, after } of changes) {
    if (stateText(after) !== wanted) return false;
    wanted = stateText(before);
  }
  return wanted === stateText(undefined);
}

/** True if the states differ in more than the time of the change. */
export const isChange = (before: Row | undefined, after: Row | undefined): boolean =>
  stateText(before) !== stateText(after);
