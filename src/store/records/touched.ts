import { param, type Sql, sql } from '../../sql.ts';

/**
 * What every change of a record sets beside its own columns: the time, which never goes back, and the version that entity tags are made from.
 * INVARIANT: each statement that changes a record holds this once.
 *
 * @param now canonical; the clock of the database without it.
 */
export function touched(now?: string): Sql {
  const time = now === undefined ? sql`now()` : sql`${param('timestamptz', now)}`;
  return sql`updated_at = greatest(updated_at, ${time}), "_version" = "_version" + 1`;
}
