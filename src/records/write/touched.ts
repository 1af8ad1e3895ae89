import { VERSION_COLUMN } from '../../schema/model/stored-names.ts';
import { ident, param, type Sql, sql } from '../../sql.ts';

/**
 * What every change of a record sets beside its own columns: the time, which never goes back, and
 * the version that ETags are made from. INVARIANT: each statement that changes a record sets this
 * once.
 *
 * @param now canonical; the clock of the database without it.
 */
export function touched(now?: string): Sql {
  return sql`updated_at = ${touchedAt(ident('updated_at'), now)}, ${nextVersion(ident(VERSION_COLUMN))}`;
}

/** The time of a change, given the time of the one before it. */
export function touchedAt(before: Sql, now?: string): Sql {
  const time = now === undefined ? sql`now()` : sql`${param('timestamptz', now)}`;
  return sql`greatest(${before}, ${time})`;
}

export const nextVersion = (version: Sql): Sql => sql`${ident(VERSION_COLUMN)} = ${version} + 1`;
