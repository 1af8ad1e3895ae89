/** The migrations of a database, in the table `bylaw_migrations`. */
import { v7 } from 'uuid';
import { namedCells, readStrings } from '../database/cells.ts';
import type { Queryable } from '../database/contract.ts';
import { param, raw, type Sql, sql, text, uuid } from '../sql.ts';
import { tableExists } from './catalog.ts';

export const HISTORY_TABLE: Sql = raw(`CREATE TABLE IF NOT EXISTS "bylaw_migrations" (
  id uuid PRIMARY KEY,
  started_at timestamptz NOT NULL,
  finished_at timestamptz,
  version text NOT NULL,
  statements jsonb NOT NULL
)`);

export interface PastMigration {
  /** The time in PostgreSQL's format. */
  readonly startedAt: string;
  /** Null: the migration was interrupted, or is running. */
  readonly finishedAt: string | null;
  /** The version of the program. */
  readonly version: string;
  readonly statements: readonly string[];
}

/** → the id of the migration. */
export async function noteStart(q: Queryable, version: string, statements: readonly string[]): Promise<string> {
  const id = v7();
  await q.run(sql`
    INSERT INTO bylaw_migrations (id, started_at, version, statements)
    VALUES (${uuid(id)}, now(), ${text(version)}, ${param('jsonb', JSON.stringify(statements))})`);
  return id;
}

export async function noteEnd(q: Queryable, id: string): Promise<void> {
  await q.run(sql`
    UPDATE bylaw_migrations
       SET finished_at = now()
     WHERE id = ${uuid(id)}`);
}

/** The oldest migration comes first. */
export async function readPastMigrations(q: Queryable): Promise<readonly PastMigration[]> {
  if (!(await tableExists(q, 'bylaw_migrations'))) return [];
  const rows = await q.rows(
    raw(`
    SELECT started_at, version, statements, finished_at
      FROM bylaw_migrations
     ORDER BY id`),
  );
  return rows.map((cells) => {
    const { startedAt, version, statements } = namedCells(cells.slice(0, 3), 'startedAt', 'version', 'statements');
    return { startedAt, finishedAt: cells[3] ?? null, version, statements: readStrings(statements) };
  });
}
