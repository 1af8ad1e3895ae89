/** Clauses that say how many rows a statement returns. */
import { param, type Sql, sql, typedLiteral } from '../../sql.ts';

const USUAL_LIMITS = new Set([10, 20, 25, 50, 100].flatMap((limit) => [limit, limit + 1]));

/**
 * PostgreSQL plans anew for every request where it does not know how few rows are wanted, so the usual page sizes are part of the
 * text, with the one row more that shows whether there is a next page.
 */
export const mostOf = (rows: number): Sql =>
  USUAL_LIMITS.has(rows) ? typedLiteral('int8', rows) : sql`${param('int8', rows)}`;

export const windowOf = (rows: number, offset: number): Sql =>
  offset === 0 ? sql`LIMIT ${mostOf(rows)}` : sql`LIMIT ${mostOf(rows)} OFFSET ${param('int8', offset)}`;

/** Pages of any size share a text: the rows are found by their ids. */
export const anyWindowOf = (rows: number, offset: number): Sql =>
  sql`LIMIT ${param('int8', rows)} OFFSET ${param('int8', offset)}`;
