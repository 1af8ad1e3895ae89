/** The rows of a collection as text that follows FROM. */
import { memoizedBy } from '../memoized.ts';
import { ident, join, raw, type Sql, sql, tableIdent } from '../sql.ts';
import { type CatalogCollection, type CatalogField, keyOf } from './types.ts';

/** The column as rules read it, which has the type of the field. */
export const readAsField = (column: Sql, { readAs }: Pick<CatalogField, 'readAs'>): Sql =>
  readAs === undefined ? column : sql`${column}${raw(readAs)}`;

/** PostgreSQL sees through the query of a table with cast columns, and finds rows by the indexes of the others. */
export const rowsOf: (collection: CatalogCollection) => Sql = memoizedBy((collection) => {
  const { table, fields, relations } = collection;
  const members = [...fields.values()];
  if (!members.some(({ readAs }) => readAs !== undefined)) return tableIdent(table);
  const references = [...relations.values()].flatMap((relation) =>
    relation.kind === 'belongs_to' ? [ident(relation.column)] : [],
  );
  const columns = members.map((field) => sql`${readAsField(ident(field.column), field)} AS ${ident(field.column)}`);
  return sql`(SELECT ${join([ident(keyOf(collection).column), ...columns, ...references], ', ')} FROM ${tableIdent(table)})`;
});
