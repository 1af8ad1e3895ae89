/** Every record of a collection, as JSON text. */

import type { Queryable } from '../../database/contract.ts';
import { namedCells } from '../../database/named-cells.ts';
import { LINK_TENANT_COLUMN } from '../../policy/condition.ts';
import type { Collection, ManyToMany } from '../../schema/model/model.ts';
import { empty, ident, join, raw, type Sql, sql, typedLiteral, uuid } from '../../sql.ts';
import { RecordShape, tableOf } from '../record-shape.ts';
import { EVERY_TENANT, tenancyOf } from '../scope.ts';
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
  const columns = join([shape.columns('t'), ...links.map((link) => linkedIds(collection, link))], ', ');
  const keys = links.map(({ name }) => `,${JSON.stringify(name)}:`);
  const about = tenancyOf(collection) === undefined ? empty : EVERY_TENANT;
  let last: string | undefined;
  for (;;) {
    const after: Sql = last === undefined ? raw('TRUE') : sql`t.id > ${uuid(last)}`;
    const rows = await q.rows(sql`
      SELECT ${about}${columns}
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

function linkedIds(collection: Collection, { linkTable, sourceColumn, targetColumn }: ManyToMany): Sql {
  const target = ident(targetColumn);
  const tenancy = tenancyOf(collection);
  const isOfTenant =
    tenancy === undefined ? empty : sql` AND l.${ident(LINK_TENANT_COLUMN)} = t.${ident(tenancy.column)}`;
  return sql`(
         SELECT array_to_json(array_agg(l.${target} ORDER BY l.${target}))::text
           FROM ${ident(linkTable)} AS l
          WHERE l.${ident(sourceColumn)} = t.id${isOfTenant})`;
}
