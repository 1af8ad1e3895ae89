/** The search fields in the database: the folded copies of existing rows, and the trigram indexes of the copies. */
import type { Queryable } from '../database/contract.ts';
import { fold } from '../policy/fold.ts';
import { constraintName } from '../schema/model/stored-names.ts';
import { ident, param, raw, type Sql, sql, tableIdent } from '../sql.ts';
import { stringLiteral, type Table } from './tables.ts';

/** The rows of a table, in the order of their ids. */
export interface PagedRows {
  readonly table: string;
  readonly key: string;
  /** The type of the ids, as `format_type` prints it. */
  readonly type: string;
}

export function pagedRows({ name, primaryKey, columns }: Table): PagedRows {
  const key = primaryKey.at(-1)!;
  return { table: name, key, type: columns.find((column) => column.name === key)!.type };
}

/** The condition that a row has an id beyond the given one, or up to it. */
export const isBeyond = ({ key, type }: PagedRows, sign: '>' | '<=', id: string): Sql =>
  sql`${ident(key)} ${raw(sign)} ${param('text', id)}::${raw(type)}`;

/** A column, and the new column that holds its folded copies. */
export interface FoldedCopy extends PagedRows {
  readonly from: string;
  readonly to: string;
  /** Also copies rows that have a copy: a program without the new column may have changed the value since. */
  readonly isRepeated?: boolean;
}

const COPIED_ROWS = 1000;

/** The comment on a column while rows lack their copies. */
export const COPYING_MARK = 'bylaw: its copies are being made';

/** Without a text, the comment is removed. */
export function commentOn(table: string, column: string, comment: string | undefined): Sql {
  const quoted = comment === undefined ? raw('NULL') : stringLiteral(comment);
  return sql`COMMENT ON COLUMN ${tableIdent(table)}.${ident(column)} IS ${quoted}`;
}

/**
 * Copies a page of rows by the function that every later write uses. → the last id of the page;
 * undefined after the last page.
 */
export async function copyPage(
  tx: Queryable,
  copy: FoldedCopy,
  after: string | undefined,
): Promise<string | undefined> {
  const { isRepeated = false } = copy;
  const [name, key, from, to] = [tableIdent(copy.table), ident(copy.key), ident(copy.from), ident(copy.to)];
  const start = after === undefined ? sql`TRUE` : isBeyond(copy, '>', after);
  // Locked: the copy of a value that changes in the meantime would be stale.
  const rows = await tx.rows(sql`
    SELECT ${key}::text, ${from}
      FROM ${name}
     WHERE ${start}
       AND ${from} IS NOT NULL
       AND ${isRepeated ? sql`TRUE` : sql`${to} IS NULL`}
     ORDER BY ${key}
     LIMIT ${raw(String(COPIED_ROWS))}
       FOR NO KEY UPDATE`);
  if (rows.length === 0) return undefined;
  const ids = rows.map(([id]) => id!);
  const copies = rows.map(([, text]) => fold(text!));
  await tx.run(sql`
    UPDATE ${name} AS t
       SET ${to} = c.text
      FROM unnest(${param('text[]', ids)}, ${param('text[]', copies)}) AS c (id, text)
     WHERE t.${key} = c.id::${raw(copy.type)}
       AND t.${to} IS DISTINCT FROM c.text`);
  return rows.length < COPIED_ROWS ? undefined : ids.at(-1);
}

/** The extension pg_trgm: its schema if it is installed; otherwise whether this role can add it. */
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

export const ADD_TRIGRAMS = raw('CREATE EXTENSION IF NOT EXISTS pg_trgm');

interface TrigramIndex {
  /** The schema of the extension; undefined if this migration adds it. */
  readonly schema: string | undefined;
  readonly isOnline: boolean;
}

export function createTrigramIndex(table: string, column: string, { schema, isOnline }: TrigramIndex): Sql {
  const operators = schema === undefined ? raw('gin_trgm_ops') : ident(schema, 'gin_trgm_ops');
  const create = raw(isOnline ? 'CREATE INDEX CONCURRENTLY' : 'CREATE INDEX');
  const index = ident(constraintName(table, [column], 'idx'));
  return sql`${create} ${index} ON ${tableIdent(table)} USING gin (${ident(column)} ${operators})`;
}
