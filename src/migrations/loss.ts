/** Whether a statement that would drop or convert values loses any, for `bylaw dev`. */

import type { Queryable, Transaction } from '../database/contract.ts';
import { namedCells } from '../database/named-cells.ts';
import { ident, raw, sql, text } from '../sql.ts';

/** The values that a statement drops or converts: of a column, or of a whole table. */
export interface LosableValues {
  readonly table: string;
  readonly column?: string;
}

/**
 * The columns of a moment. PostgreSQL numbers tables and their columns and uses no number twice, so
 * a column that is renamed later is still known.
 */
export type Columns = ReadonlySet<string>;

export async function readColumns(db: Queryable): Promise<Columns> {
  const rows = await db.rows(
    raw(`
SELECT a.attrelid || '.' || a.attnum
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relnamespace = current_schema()::regnamespace
   AND c.relkind IN ('r', 'p')
   AND a.attnum > 0
   AND NOT a.attisdropped`),
  );
  return new Set(rows.map((cells) => namedCells(cells, 'name').name));
}

/**
 * True if the values did not exist at the time of `before`, or if there are none. Nobody can add
 * any until `tx` ends.
 */
export async function losesNothing(
  tx: Transaction,
  { table, column }: LosableValues,
  before: Columns,
): Promise<boolean> {
  await tx.run(raw(`LOCK TABLE ${ident(table).text} IN ACCESS EXCLUSIVE MODE`));
  const isPlace = column === undefined ? sql`attnum = 1` : sql`attname = ${text(column)}`;
  const [found] = await tx.rows(sql`
    SELECT attrelid || '.' || attnum
      FROM pg_attribute
     WHERE attrelid = to_regclass(quote_ident(${text(table)}))
       AND ${isPlace}`);
  if (found !== undefined && !before.has(found[0]!)) return true;
  const isFilled = column === undefined ? 'true' : `${ident(column).text} IS NOT NULL`;
  const [row] = await tx.rows(raw(`SELECT EXISTS (SELECT 1 FROM ${ident(table).text} WHERE ${isFilled})`));
  return row?.[0] === 'f';
}
