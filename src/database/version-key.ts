/** The secret key of record versions. The database holds it, so that dumps keep it and all nodes share it. */
import { randomBytes } from 'node:crypto';
import { raw, type Sql, sql, text } from '../sql.ts';
import type { Queryable, Transaction } from './contract.ts';
import { namedCells } from './named-cells.ts';

/** At most one row. */
export const VERSION_KEY_TABLE: Sql = raw(`CREATE TABLE IF NOT EXISTS "bylaw_version_key" (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  key text NOT NULL
)`);

/** Part of a migration; the first to run makes the key. */
export async function makeVersionKey(tx: Transaction): Promise<void> {
  const key = randomBytes(32).toString('base64url');
  await tx.run(sql`
    INSERT INTO bylaw_version_key (key)
    VALUES (${text(key)})
    ON CONFLICT DO NOTHING`);
}

export async function readVersionKey(q: Queryable): Promise<Buffer> {
  const [row] = await q.rows(raw('SELECT key FROM bylaw_version_key'));
  if (row === undefined) throw new Error('the table `bylaw_version_key` is empty; migrate the database first');
  return Buffer.from(namedCells(row, 'key').key, 'base64url');
}
