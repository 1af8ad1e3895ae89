/** Related records of a page of records: one statement a relation, and only what the caller may read. */

import { Problem } from '../../problem.ts';
import type { ManyToMany, Relation } from '../../schema/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../../sql.ts';
import type { Cells } from '../database/contract.ts';
import { type AccessContext, type Reading, readable } from './access-context.ts';
import { recordColumns } from './select.ts';

/** The relations that `expand` names, in its order. */
export function expanded(ask: AccessContext, names: readonly string[]): readonly Relation[] {
  return names.map((name, i) => {
    const relation = ask.collection.relations.get(name);
    if (relation && names.indexOf(name) === i) return relation;
    const known = [...ask.collection.relations.keys()].join(', ') || 'none';
    const detail = relation
      ? `\`${name}\` is named twice`
      : `\`${name}\` is no relation of \`${ask.collection.name}\`; there are: ${known}`;
    throw new Problem('unknown_expand', detail, { errors: [{ parameter: 'expand', code: 'unknown_expand', detail }] });
  });
}

interface Page {
  readonly rows: readonly Cells[];
  /** Where the record's cells begin. */
  readonly from: number;
  readonly relations: readonly Relation[];
}

/** JSON text of each record of the page. */
export async function toJson(reading: Reading, { rows, from, relations }: Page): Promise<readonly string[]> {
  const shape = reading.store.shape(reading.ask.collection.name);
  if (relations.length === 0) return rows.map((cells) => shape.json(cells, from));
  if (rows.length === 0) return [];
  const found = await Promise.all(relations.map((relation) => expandOne(reading, { rows, from, relation })));
  return rows.map((cells) => {
    const parts = relations.map((relation, i) => `${JSON.stringify(relation.name)}:${found[i]!(cells)}`);
    return `${shape.open(cells, from)},"expand":{${parts.join(',')}}}`;
  });
}

/** The JSON text of a record's related ones, given the record's cells. */
type Lookup = (cells: Cells) => string;

async function expandOne(
  reading: Reading,
  { rows, from, relation }: { readonly rows: readonly Cells[]; readonly from: number; readonly relation: Relation },
): Promise<Lookup> {
  const shape = reading.store.shape(reading.ask.collection.name);
  switch (relation.kind) {
    case 'belongs_to':
    case 'has_one': {
      const own =
        relation.kind === 'belongs_to'
          ? shape.place(relation.name)
          : shape.width + shape.hasOnes.findIndex(({ name }) => name === relation.name);
      const ids = new Set(rows.flatMap((cells) => cells[from + own] ?? []));
      const byId = await group(reading, relation, { key: sql`x.id`, among: [...ids] });
      return (cells) => byId.get(cells[from + own] ?? '')?.[0] ?? 'null';
    }
    case 'has_many':
    case 'many_to_many': {
      const key =
        relation.kind === 'has_many' ? sql`x.${ident(relation.viaColumn)}` : sql`l.${ident(relation.sourceColumn)}`;
      const byOwner = await group(reading, relation, { key, among: rows.map((cells) => cells[from]!) });
      return (cells) => `[${byOwner.get(cells[from]!)?.join(',') ?? ''}]`;
    }
  }
}

/** JSON texts of the target's readable records, in the order of their ids, by the value of `key`. */
async function group(
  { store, q, ask }: Reading,
  relation: Relation,
  { key, among }: { readonly key: Sql; readonly among: readonly string[] },
): Promise<ReadonlyMap<string, readonly string[]>> {
  const groups = new Map<string, string[]>();
  if (among.length === 0 || ask.permit(relation.collection, 'read').verdict === 'deny') return groups;
  const columns = recordColumns(store, ask, { collection: relation.collection, alias: 'x' });
  const source =
    relation.kind === 'many_to_many'
      ? linked(store.from(relation.collection, raw('x')), relation)
      : store.from(relation.collection, raw('x'));
  const rows = await q.rows(
    sql`SELECT ${key}, ${columns} FROM ${source} WHERE ${key} = ANY(${param('uuid[]', among)}) AND ${readable(ask, relation.collection, 'x')} ORDER BY x.id`,
  );
  const shape = store.shape(relation.collection);
  for (const cells of rows) {
    const json = shape.json(cells, 1);
    const group = groups.get(cells[0]!);
    if (group) group.push(json);
    else groups.set(cells[0]!, [json]);
  }
  return groups;
}

const linked = (target: Sql, { linkTable, targetColumn }: ManyToMany): Sql =>
  join([sql`${ident(linkTable)} AS l`, sql`${target} ON x.id = l.${ident(targetColumn)}`], ' JOIN ');
