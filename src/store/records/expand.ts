/**
 * Related records of a page: one statement per relation, only what the caller may read, at most 100
 * per record.
 */

import type { BelongsTo, HasMany, HasOne, ManyToMany, Relation } from '../../schema/model.ts';
import { ident, param, raw, type Sql, sql, typedLiteral } from '../../sql.ts';
import type { Cells } from '../database/contract.ts';
import { type Reading, readable } from './access-context.ts';
import { recordColumns } from './select.ts';

/**
 * The number of records that a has_many or many_to_many shows; `expand_more` lists the relations
 * that have more.
 */
const MOST_EXPANDED = 100;

interface ExpandedRows {
  readonly rows: readonly Cells[];
  /** Where the record's cells begin. */
  readonly from: number;
  readonly relations: readonly Relation[];
}

/** The JSON text of each record of the page. */
export async function toJson(reading: Reading, { rows, from, relations }: ExpandedRows): Promise<readonly string[]> {
  const shape = reading.store.shape(reading.access.collection.name);
  if (relations.length === 0) return rows.map((cells) => shape.json(cells, from));
  if (rows.length === 0) return [];
  const records = rows.map((cells) => cells.slice(from));
  const lookups = await Promise.all(relations.map((relation) => expandOne(reading, relation, records)));
  return records.map((record) => {
    const found = lookups.map((lookup) => lookup(record));
    const members = relations.map(({ name }, i) => `${JSON.stringify(name)}:${found[i]!.json}`);
    const cut = relations.filter((_, i) => found[i]!.isCut).map(({ name }) => name);
    const more = cut.length === 0 ? '' : `,"expand_more":${JSON.stringify(cut)}`;
    return `${shape.open(record)},"expand":{${members.join(',')}}${more}}`;
  });
}

interface Expanded {
  readonly json: string;
  /** The record has more related records than are shown. */
  readonly isCut: boolean;
}
/** What a record's relation shows, given the record's cells. */
type Lookup = (record: Cells) => Expanded;

function expandOne(reading: Reading, relation: Relation, records: readonly Cells[]): Promise<Lookup> {
  switch (relation.kind) {
    case 'belongs_to':
    case 'has_one':
      return expandToOne(reading, relation, records);
    case 'has_many':
    case 'many_to_many':
      return expandToMany(reading, relation, records);
  }
}

const mayReadNone = ({ access }: Reading, { collection }: Relation): boolean =>
  access.permit(collection, 'read').verdict === 'deny';

async function expandToOne(reading: Reading, relation: BelongsTo | HasOne, records: readonly Cells[]): Promise<Lookup> {
  const { store, q, access } = reading;
  const own = store.shape(access.collection.name);
  const place =
    relation.kind === 'belongs_to'
      ? own.place(relation.name)
      : own.width + own.hasOnes.findIndex(({ name }) => name === relation.name);
  const ids = [...new Set(records.flatMap((record) => record[place] ?? []))];
  if (ids.length === 0 || mayReadNone(reading, relation)) return () => ({ json: 'null', isCut: false });
  const { collection } = relation;
  const rows = await q.rows(sql`
    SELECT ${recordColumns(store, access, { collection, alias: 'x' })}
      FROM ${store.from(collection, raw('x'))}
     WHERE x.id = ANY(${param('uuid[]', ids)})
       AND ${readable(access, collection, 'x')}`);
  const shape = store.shape(collection);
  const byId = new Map(rows.map((cells) => [cells[0], shape.json(cells)]));
  return (record) => ({ json: byId.get(record[place] ?? null) ?? 'null', isCut: false });
}

/** Reads one more related row per record than is shown, which reveals whether there are more. */
async function expandToMany(
  reading: Reading,
  relation: HasMany | ManyToMany,
  records: readonly Cells[],
): Promise<Lookup> {
  if (mayReadNone(reading, relation)) return () => ({ json: '[]', isCut: false });
  const { store, q, access } = reading;
  const { collection } = relation;
  const { source, key } = relatedBy(relation, store.from(collection, raw('x')));
  const rows = await q.rows(sql`
    SELECT record.id, ${recordColumns(store, access, { collection, alias: 'x' })}
      FROM unnest(${param(
        'uuid[]',
        records.map((record) => record[0]),
      )}) AS record (id)
     CROSS JOIN LATERAL (
           SELECT x.*
             FROM ${source}
            WHERE ${key} = record.id
              AND ${readable(access, collection, 'x')}
            ORDER BY x.id
            LIMIT ${typedLiteral('int8', MOST_EXPANDED + 1)}) AS x
     ORDER BY x.id`);
  const shape = store.shape(collection);
  const byRecord = new Map<string | null, string[]>();
  for (const cells of rows) {
    const group = byRecord.get(cells[0]!);
    if (group === undefined) byRecord.set(cells[0]!, [shape.json(cells, 1)]);
    else group.push(shape.json(cells, 1));
  }
  return (record) => {
    const all = byRecord.get(record[0]!) ?? [];
    return { json: `[${all.slice(0, MOST_EXPANDED).join(',')}]`, isCut: all.length > MOST_EXPANDED };
  };
}

interface JoinedSource {
  readonly source: Sql;
  /** Equals the id of the record that the row is related to. */
  readonly key: Sql;
}

function relatedBy(relation: HasMany | ManyToMany, target: Sql): JoinedSource {
  if (relation.kind === 'has_many') return { source: target, key: sql`x.${ident(relation.viaColumn)}` };
  const { linkTable, sourceColumn, targetColumn } = relation;
  return {
    source: sql`${ident(linkTable)} AS l JOIN ${target} ON x.id = l.${ident(targetColumn)}`,
    key: sql`l.${ident(sourceColumn)}`,
  };
}
