/** The rows of a collection as text that follows FROM. */
import { memoizedBy } from '../memoized.ts';
import { empty, ident, join, quotedText, raw, type Sql, sql, tableIdent } from '../sql.ts';
import { foldedColumn } from './fold.ts';
import {
  belongsTosOf,
  type CatalogBelongsTo,
  type CatalogCollection,
  type CatalogField,
  type JsonPart,
  keyOf,
  type PartType,
  type ReferencedColumn,
  type ValueType,
} from './types.ts';

/** The column as rules read it, which has the type of the field. */
export const readAsField = (column: Sql, { readAs }: Pick<CatalogField, 'readAs'>): Sql =>
  readAs === undefined ? column : sql`${column}${raw(readAs)}`;

/** The part of a column of json, NULL where the path has a value of another type. */
export function partOfColumn(column: Sql, { keys }: JsonPart, type: ValueType): Sql {
  const value = sql`(${column} #> ${raw(quotedText(`{${keys.join(',')}}`))})`;
  const is = (of: string, read: Sql): Sql => sql`CASE WHEN jsonb_typeof(${value}) = '${raw(of)}' THEN ${read} END`;
  const number = sql`${value}::numeric`;
  // A guard precedes each cast: no row has a value that PostgreSQL cannot cast.
  const readers: Readonly<Record<PartType, () => Sql>> = {
    string: () => is('string', sql`${value} #>> '{}'`),
    bool: () => is('boolean', sql`${value}::bool`),
    int: () =>
      is(
        'number',
        sql`CASE WHEN ${number} % 1 = 0 AND abs(${number}) <= ${raw(String(Number.MAX_SAFE_INTEGER))} THEN ${number}::int8 END`,
      ),
    float: () =>
      is(
        'number',
        sql`CASE WHEN ${number} = 0 OR abs(${number}) < 1e300 AND abs(${number}) >= 1e-300 THEN ${number}::float8 END`,
      ),
  };
  return sql`(${readers[type as PartType]()})`;
}

/** The id of the record that the row with the name refers to; NULL if it refers to none. */
export function idReferredTo(
  row: string,
  { column, references, made }: Pick<CatalogBelongsTo, 'column' | 'references' | 'made'>,
): Sql {
  const value = made?.(row) ?? ident(row, column);
  return references === undefined ? value : cellOf(references, keyIn('r', references), references.column, value);
}

/** The value of the column that refers to the record with the id. */
export const valueReferringTo = (id: Sql, { references }: Pick<CatalogBelongsTo, 'references'>): Sql =>
  references === undefined ? id : cellOf(references, ident('r', references.column), references.key, id);

const keyIn = (row: string, { key, keyAs }: ReferencedColumn): Sql => readAsField(ident(row, key), { readAs: keyAs });

const cellOf = ({ table }: ReferencedColumn, wanted: Sql, given: string, value: Sql): Sql => sql`(
      SELECT ${wanted}
        FROM ${tableIdent(table)} AS r
       WHERE ${ident('r', given)} = ${value})`;

/**
 * PostgreSQL sees through the query of a table with cast columns, and finds rows by the indexes of the others. A join
 * finds the ids of references by other columns: an index serves it from either side.
 */
export const rowsOf: (collection: CatalogCollection) => Sql = memoizedBy((collection) => {
  const joined = belongsTosOf(collection).filter(({ references }) => references !== undefined);
  const joins = joined.map(({ column, references }, i) => {
    const { table, column: referenced } = references!;
    return sql` LEFT JOIN ${tableIdent(table)} AS ${raw(`r${i}`)} ON ${ident(`r${i}`, referenced)} = ${ident('s', column)}`;
  });
  return rowsWith(collection, join(joins, ''), (relation) => {
    const i = joined.indexOf(relation);
    return i < 0 ? idReferredTo('s', relation) : keyIn(`r${i}`, relation.references!);
  });
});

/** The same rows for a statement that locks them, but not the rows they refer to. */
export const lockableRowsOf: (collection: CatalogCollection) => Sql = memoizedBy((collection) =>
  rowsWith(collection, empty, (relation) => idReferredTo('s', relation)),
);

function rowsWith(collection: CatalogCollection, joins: Sql, idOf: (relation: CatalogBelongsTo) => Sql): Sql {
  const { table, fields } = collection;
  const { column: key, made } = keyOf(collection);
  const belongsTos = belongsTosOf(collection);
  const isStored =
    made === undefined &&
    ![...fields.values()].some(({ readAs }) => readAs !== undefined) &&
    !belongsTos.some(({ references, made: of }) => references ?? of);
  if (isStored) return tableIdent(table);
  const columns = [
    made === undefined ? ident('s', key) : sql`${made} AS ${ident(key)}`,
    ...[...fields.values()].flatMap((field) => [
      sql`${readAsField(ident('s', field.column), field)} AS ${ident(field.column)}`,
      ...(field.search ? [ident('s', foldedColumn(field.column))] : []),
    ]),
    ...belongsTos.map((relation) => sql`${idOf(relation)} AS ${ident(relation.column)}`),
  ];
  return sql`(SELECT ${join(columns, ', ')} FROM ${tableIdent(table)} AS s${joins})`;
}
