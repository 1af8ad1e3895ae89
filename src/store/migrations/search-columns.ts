/** What search fields have in the database: the trigram indexes of their folded copies, and the copies of rows that exist. */
import { fold } from '../../policy/fold.ts';
import { ident, param, raw, sql } from '../../sql.ts';
import type { Queryable, Transaction } from '../database/contract.ts';
import { nameOf } from './tables.ts';

/** A new column of copies, and the column that it is copied from. */
export interface Filling {
  readonly table: string;
  readonly column: string;
  readonly copy: string;
}

const PAGE = 1000;

/** Fills the copies of all rows, by the function that every later write uses. */
export async function fillCopies(tx: Transaction, { table, column, copy }: Filling): Promise<void> {
  const [name, from, to] = [ident(table), ident(column), ident(copy)];
  let after: string | undefined;
  do {
    const start = after === undefined ? sql`TRUE` : sql`id > ${param('uuid', after)}`;
    const rows = await tx.rows(sql`
      SELECT id::text, ${from}
        FROM ${name}
       WHERE ${start}
       ORDER BY id
       LIMIT ${raw(String(PAGE))}`);
    const copies = rows.map(([, text]) => (text == null ? null : fold(text)));
    await tx.run(sql`
      UPDATE ${name} AS t
         SET ${to} = c.text
        FROM unnest(${param(
          'uuid[]',
          rows.map(([id]) => id!),
        )}, ${param('text[]', copies)}) AS c (id, text)
       WHERE t.id = c.id AND c.text IS NOT NULL`);
    after = rows.length < PAGE ? undefined : rows.at(-1)![0]!;
  } while (after !== undefined);
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

/** `schema`: of the extension; undefined where this migration adds it. */
export function createTrigramIndex(table: string, column: string, schema: string | undefined): string {
  const operators = schema === undefined ? 'gin_trgm_ops' : ident(schema, 'gin_trgm_ops').text;
  const index = ident(nameOf(table, [column], 'idx')).text;
  return `CREATE INDEX ${index} ON ${ident(table).text} USING gin (${ident(column).text} ${operators})`;
}
