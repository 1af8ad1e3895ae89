/** Every record of a collection, as JSON text. */
import type { Collection } from '../../schema/model.ts';
import { ident, join, raw, type Sql, sql, typedLiteral, uuid } from '../../sql.ts';
import type { Queryable } from '../database/contract.ts';
import { namedCells } from '../database/named-cells.ts';
import { RecordShape, tableOf } from '../records/record-shape.ts';
import { manyToManyOf } from './members.ts';

const PAGE_SIZE = 1_000;

/**
 * In the order of their ids, a page a statement: no transaction stays open while a slow reader
 * takes them. Each record is as it stood when its page was read. Members are those of the API
 * without has_one; a many_to_many is a list of ids.
 */
export async function* exportRecords(q: Queryable, collection: Collection): AsyncGenerator<string> {
  const shape = new RecordShape(collection);
  const links = manyToManyOf(collection);
  const columns = join([shape.columns('t'), ...links.map(linkedIds)], ', ');
  const keys = links.map(({ name }) => `,${JSON.stringify(name)}:`);
  let last: string | undefined;
  for (;;) {
    const after: Sql = last === undefined ? raw('TRUE') : sql`t.id > ${uuid(last)}`;
    const rows = await q.rows(sql`
      SELECT ${columns}
        FROM ${tableOf(collection)} AS t
       WHERE ${after}
       ORDER BY t.id
       LIMIT ${typedLiteral('int8', PAGE_SIZE)}`);
    for (const cells of rows) {
      const lists = keys.map((key, i) => `${key}${cells[shape.width + i] ?? '[]'}`);
      yield `${shape.openStored(cells)}${lists.join('')}}`;
    }
    if (rows.length < PAGE_SIZE) return;
    last = namedCells(rows.at(-1), 'id').id;
  }
}

function linkedIds({ linkTable, sourceColumn, targetColumn }: ReturnType<typeof manyToManyOf>[number]): Sql {
  const target = ident(targetColumn);
  return sql`(
         SELECT array_to_json(array_agg(l.${target} ORDER BY l.${target}))::text
           FROM ${ident(linkTable)} AS l
          WHERE l.${ident(sourceColumn)} = t.id)`;
}
