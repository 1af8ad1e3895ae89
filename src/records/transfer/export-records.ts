/** Every record of a collection, as JSON text. */
import type { Cells, Queryable } from '../../database/contract.ts';
import { type Collection, type ManyToMany, tenantKeyOf } from '../../schema/model/model.ts';
import { ident, join, type Sql, sql, typedLiteral } from '../../sql.ts';
import { recordKeyOf } from '../record-key.ts';
import { RecordShape } from '../record-shape.ts';
import { type Collections, everyTenant, type Scope, type ScopedRows } from '../scope.ts';
import { manyToManyOf } from './members.ts';

const PAGE_SIZE = 1_000;

/** Some of the records. */
interface ExportedRows {
  /** Named `t`. */
  readonly rows: ScopedRows;
  readonly isOfTenant: readonly Sql[];
  /** The id after which they begin. */
  readonly after?: string | undefined;
}

interface ExportSource {
  readonly q: Queryable;
  readonly schema: Collections;
}

/**
 * In the order of their ids, a page a statement: no transaction stays open while a slow reader
 * takes them. Each record is as it stood when its page was read. Members are those of the API
 * without has_one; a many_to_many is a list of ids.
 */
export async function* exportRecords(
  { q, schema }: ExportSource,
  collection: Collection,
  given?: ExportedRows,
): AsyncGenerator<string> {
  const shape = new RecordShape(collection, schema);
  const links = manyToManyOf(collection);
  const key = recordKeyOf(collection);
  const records = given?.rows ?? everyTenant(schema).from(collection.name, 't');
  // A cluster reads the links of records of every tenant in a statement of their own.
  const isApart = given === undefined && tenantKeyOf(collection) !== undefined;
  const lists = links.map((relation) => linkedIds(records, collection, relation));
  const columns = join([shape.columns('t'), ...(isApart ? [] : lists)], ', ');
  const keys = links.map(({ name }) => `,${JSON.stringify(name)}:`);
  let last = given?.after;
  for (;;) {
    const after: readonly Sql[] = last === undefined ? [] : [sql`${key.of('t')} > ${key.param(last)}`];
    const rows = await q.rows(sql`
      SELECT ${columns}
        FROM ${records.where(...(given?.isOfTenant ?? []), ...after)}
       ORDER BY ${key.of('t')}
       LIMIT ${typedLiteral('int8', PAGE_SIZE)}`);
    const apart: ReadonlyMap<string | null, string>[] = [];
    if (isApart)
      for (const relation of links)
        apart.push(await storedLinks(q, everyTenant(schema), { collection, relation, rows }));
    for (const cells of rows) {
      const linked = (i: number) => (isApart ? apart[i]!.get(cells[0]!) : cells[shape.width + i]);
      const lists = keys.map((key, i) => `${key}${linked(i) ?? '[]'}`);
      yield `${shape.openStored(cells)}${lists.join('')}}`;
    }
    if (rows.length < PAGE_SIZE) return;
    last = rows.at(-1)![0]!;
  }
}

interface LinkedPage {
  readonly collection: Collection;
  readonly relation: ManyToMany;
  /** The id is the first cell of each. */
  readonly rows: readonly Cells[];
}

/** The JSON list of each record that has links, by its id. */
async function storedLinks(q: Queryable, scope: Scope, { collection, relation, rows }: LinkedPage) {
  const [source, target] = [relation.sourceColumn, relation.targetColumn].map((column) => ident('l', column));
  const isOfPage = sql`${source!} = ANY(${recordKeyOf(collection).list(rows.map(([id]) => id))})`;
  const found = await q.rows(sql`
    SELECT ${source!}, array_to_json(array_agg(${target!} ORDER BY ${target!}))::text
      FROM ${scope.links(relation, collection.name, 'l').where(isOfPage)}
     GROUP BY 1`);
  return new Map(found.map(([id, list]) => [id!, list!]));
}

function linkedIds({ related }: ScopedRows, collection: Collection, relation: ManyToMany): Sql {
  const target = ident('l', relation.targetColumn);
  const isOfRecord = sql`${ident('l', relation.sourceColumn)} = ${recordKeyOf(collection).of('t')}`;
  return sql`(
         SELECT array_to_json(array_agg(${target} ORDER BY ${target}))::text
           FROM ${related.links(relation, collection.name, 'l').where(isOfRecord)})`;
}
