/** What search fields have in the database: the trigram indexes of their folded copies, and the copies of rows that exist. */

import type { Queryable } from '../database/contract.ts';
import { fold } from '../policy/fold.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { ident, param, raw, sql } from '../sql.ts';

/** A new column of copies, and the column that it is copied from. */
export interface Filling {
  readonly table: string;
  readonly column: string;
  readonly copy: string;
  /** Also of rows that have a copy: a program that does not know it may have changed the value since. */
  readonly isRepeated?: boolean;
}

const PAGE = 1000;

/** The comment of a column whose copies are being made, until all are there. */
export const FILLING_MARK = 'bylaw: its copies are being made';

/** Without a text, the comment is removed. */
export function markOf(table: string, column: string, comment: string | undefined): string {
  const quoted = comment === undefined ? 'NULL' : `'${comment}'`;
  return `COMMENT ON COLUMN ${ident(table, column).text} IS ${quoted}`;
}

/** Fills the copies of all rows that lack them, by the function that every later write uses. */
export async function fillCopies(tx: Queryable, filling: Filling): Promise<void> {
  let after: string | undefined;
  do after = await fillPage(tx, filling, after);
  while (after !== undefined);
}

/** → the last id of the page; undefined after the last page. */
export async function fillPage(
  tx: Queryable,
  filling: Filling,
  after: string | undefined,
): Promise<string | undefined> {
  const { table, column, copy, isRepeated = false } = filling;
  const [name, from, to] = [ident(table), ident(column), ident(copy)];
  const start = after === undefined ? sql`TRUE` : sql`id > ${param('uuid', after)}`;
  // FOR UPDATE: a copy of a value that is changed meanwhile would be stale.
  const rows = await tx.rows(sql`
    SELECT id::text, ${from}
      FROM ${name}
     WHERE ${start}
       AND ${from} IS NOT NULL
       AND ${isRepeated ? sql`TRUE` : sql`${to} IS NULL`}
     ORDER BY id
     LIMIT ${raw(String(PAGE))}
       FOR NO KEY UPDATE`);
  if (rows.length === 0) return undefined;
  const ids = rows.map(([id]) => id!);
  const copies = rows.map(([, text]) => fold(text!));
  await tx.run(sql`
    UPDATE ${name} AS t
       SET ${to} = c.text
      FROM unnest(${param('uuid[]', ids)}, ${param('text[]', copies)}) AS c (id, text)
     WHERE t.id = c.id
       AND t.${to} IS DISTINCT FROM c.text`);
  return rows.length < PAGE ? undefined : ids.at(-1);
}

/** The extension pg_trgm: where it is, whether this role could add it, or neither. */
export type Trigrams = { readonly schema: string } | 'addable' | 'none';

export async function findTrigrams(db: Queryable): Promise<Trigrams> {
  const [installed] = await db.rows(
    raw(`
    SELECT n.nspname
      FROM pg_extension e
      JOIN pg_namespace n ON n.oid = e.extnamespace
     WHERE e.extname = 'pg_trgm'`),
  );
  if (installed?.[0] != null) return { schema: installed[0] };
  const [addable] = await db.rows(
    raw(`
    SELECT EXISTS (
      SELECT 1
        FROM pg_available_extension_versions v
        JOIN pg_roles r ON r.rolname = current_user
       WHERE v.name = 'pg_trgm'
         AND (r.rolsuper OR (v.trusted AND has_database_privilege(current_database(), 'CREATE'))))`),
  );
  return addable?.[0] === 't' ? 'addable' : 'none';
}

export const ADD_TRIGRAMS = 'CREATE EXTENSION IF NOT EXISTS pg_trgm';

interface TrigramIndex {
  /** Of the extension; undefined where this migration adds it. */
  readonly schema: string | undefined;
  readonly isOnline: boolean;
}

export function createTrigramIndex(table: string, column: string, { schema, isOnline }: TrigramIndex): string {
  const operators = schema === undefined ? 'gin_trgm_ops' : ident(schema, 'gin_trgm_ops').text;
  const index = ident(constraintName(table, [column], 'idx')).text;
  const build = `CREATE INDEX ${isOnline ? 'CONCURRENTLY ' : ''}${index}`;
  return `${build} ON ${ident(table).text} USING gin (${ident(column).text} ${operators})`;
}
