/** Gives kept rows, which hold names of the schema as values, the names of now. */
import type { Queryable } from '../../database/contract.ts';
import { ident, param, regclassOf, type Sql, sql } from '../../sql.ts';
import type { Step } from '../step.ts';
import { LARGE_BYTES } from '../table-diff.ts';
import { stringLiteral } from '../tables.ts';

interface Rewriting {
  readonly db: Queryable;
  /** The bytes from which a table is large. */
  readonly largeFrom?: number | undefined;
}

interface RewrittenRows {
  readonly table: string;
  /** The name of the table in the database. */
  readonly stored: string;
  /** The condition of the rows, in the table `h`. */
  readonly rows: Sql;
  /** Why the steps block a large table. */
  readonly rewrites: string;
}

/**
 * Returns a step for each change; none where the table has no such rows.
 * @param changes the texts that follow UPDATE and the table `h`
 */
export async function rewriteSteps(
  { db, largeFrom = LARGE_BYTES }: Rewriting,
  { table, stored, rows, rewrites }: RewrittenRows,
  changes: readonly Sql[],
): Promise<readonly Step[]> {
  if (changes.length === 0) return [];
  const found = sql`SELECT 1 FROM ${ident(stored)} AS h WHERE ${rows} LIMIT 1`;
  if ((await db.rows(found)).length === 0) return [];
  const [size] = await db.rows(sql`SELECT pg_table_size(${regclassOf(stored)}) >= ${param('int8', largeFrom)}`);
  return changes.map((change) => ({
    sql: sql`UPDATE ${ident(table)} AS h ${change}`,
    ...(size?.[0] === 't' && { rewrites }),
  }));
}

/**
 * The object, with another name of a member that it has. A cluster takes functions in a CASE that are immutable, which
 * `jsonb_build_object` is not.
 */
export const renamedMember = (object: Sql, name: string, was: string): Sql =>
  sql`jsonb_set(${object} - ${stringLiteral(was)}, ARRAY[${stringLiteral(name)}], ${object} -> ${stringLiteral(was)})`;
