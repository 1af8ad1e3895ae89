/** Every record of a collection, as JSON text. */
import { namedCells } from '../../database/cells.ts';
import type { Queryable } from '../../database/contract.ts';
import type { Collection, ManyToMany } from '../../schema/model/model.ts';
import { ident, join, type Sql, sql, typedLiteral, uuid } from '../../sql.ts';
import { RecordShape } from '../record-shape.ts';
import { everyTenant, type ScopedRows } from '../scope.ts';
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
  const records = everyTenant({ collections: new Map([[collection.name, collection]]) }).from(collection.name, 't');
  const lists = links.map((relation) => linkedIds(records, collection, relation));
  const columns = join([shape.columns('t'), ...lists], ', ');
  const keys = links.map(({ name }) => `,${JSON.stringify(name)}:`);
  let last: string | undefined;
  for (;;) {
    const after: readonly Sql[] = last === undefined ? [] : [sql`t.id > ${uuid(last)}`];
    const rows = await q.rows(sql`
      SELECT ${columns}
        FROM ${records.where(...after)}
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

function linkedIds({ related }: ScopedRows, { name }: Collection, relation: ManyToMany): Sql {
  const target = ident('l', relation.targetColumn);
  const isOfRecord = sql`${ident('l', relation.sourceColumn)} = t.id`;
  return sql`(
         SELECT array_to_json(array_agg(${target} ORDER BY ${target}))::text
           FROM ${related.links(relation, name, 'l').where(isOfRecord)})`;
}
