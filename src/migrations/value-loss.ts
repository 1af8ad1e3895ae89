/** Decides for `bylaw dev` whether a statement that would drop or convert values loses any. */
import { namedCells } from '../database/cells.ts';
import type { Queryable, Transaction } from '../database/contract.ts';
import { ident, raw, sql, text } from '../sql.ts';

/** The values that a statement drops or converts: of a column, or of a whole table. */
export interface LosableValues {
  readonly table: string;
  readonly column?: string;
}

/**
 * The columns of a moment. PostgreSQL numbers tables and their columns and never reuses a number, so
 * a column keeps its number when it is renamed.
 */
export type ColumnNumbers = ReadonlySet<string>;

export async function readColumnNumbers(db: Queryable): Promise<ColumnNumbers> {
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
 * True if the values did not exist at the time of `before`, or if there are none. The lock keeps
 * other sessions from adding any until `tx` ends.
 */
export async function losesNothing(
  tx: Transaction,
  { table, column }: LosableValues,
  before: ColumnNumbers,
): Promise<boolean> {
  await tx.run(sql`LOCK TABLE ${ident(table)} IN ACCESS EXCLUSIVE MODE`);
  const isColumn = column === undefined ? sql`attnum = 1` : sql`attname = ${text(column)}`;
  const [found] = await tx.rows(sql`
    SELECT attrelid || '.' || attnum
      FROM pg_attribute
     WHERE attrelid = to_regclass(quote_ident(${text(table)}))
       AND ${isColumn}`);
  if (found !== undefined && !before.has(found[0]!)) return true;
  const isFilled = column === undefined ? raw('true') : sql`${ident(column)} IS NOT NULL`;
  const [row] = await tx.rows(sql`SELECT EXISTS (SELECT 1 FROM ${ident(table)} WHERE ${isFilled})`);
  return row?.[0] === 'f';
}
