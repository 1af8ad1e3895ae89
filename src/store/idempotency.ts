/** Answers kept under an Idempotency-Key, written in the transaction of the write itself: both happen, or neither. */

import { Problem } from '../problem.ts';
import { param, raw, type Sql, sql } from '../sql.ts';
import type { Queryable, Transaction } from './database/contract.ts';

export const IDEMPOTENCY_TABLES: readonly Sql[] = [
  raw(`CREATE TABLE IF NOT EXISTS "bylaw_idempotency" (
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  path text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  body_hash text NOT NULL,
  status int,
  headers jsonb,
  body text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, path, key)
)`),
  raw('CREATE INDEX IF NOT EXISTS "bylaw_idempotency_created_at" ON "bylaw_idempotency" (created_at)'),
];

export interface IdempotencyKey {
  readonly userId: string;
  readonly path: string;
  readonly key: string;
  /** Of the request's body, as received. */
  readonly bodyHash: string;
}
export interface KeptAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The first answer when there is one; undefined when this transaction is the first, and must `keepAnswer` before it ends.
 * A second request in flight waits here for the end of the first; when that fails, it is the first itself.
 */
export async function claimKey(tx: Transaction, asked: IdempotencyKey): Promise<KeptAnswer | undefined> {
  const { userId, path, key, bodyHash } = asked;
  const where = sql`user_id = ${param('uuid', userId)} AND path = ${param('text', path)} AND key = ${param('text', key)}`;
  await tx.run(sql`DELETE FROM bylaw_idempotency WHERE ${where} AND created_at < now() - interval '24 hours'`);
  const claimed = await tx.run(sql`
INSERT INTO bylaw_idempotency (user_id, path, key, body_hash)
VALUES (${param('uuid', userId)}, ${param('text', path)}, ${param('text', key)}, ${param('text', bodyHash)})
ON CONFLICT DO NOTHING`);
  if (claimed === 1) return undefined;
  const [row] = await tx.rows(sql`SELECT body_hash, status, headers, body FROM bylaw_idempotency WHERE ${where}`);
  if (!row)
    throw new Problem('unavailable', 'the first request with this key has just ended; try again', {
      headers: { 'Retry-After': '1' },
    });
  if (row[0] !== bodyHash) {
    throw new Problem('idempotency_mismatch', 'this Idempotency-Key was used with another body');
  }
  return { status: Number(row[1]), headers: JSON.parse(row[2]!) as Record<string, string>, body: row[3]! };
}

export async function keepAnswer(
  tx: Transaction,
  { userId, path, key }: IdempotencyKey,
  answer: KeptAnswer,
): Promise<void> {
  await tx.run(sql`
UPDATE bylaw_idempotency
   SET status = ${param('int8', answer.status)}, headers = ${param('jsonb', answer.headers)}, body = ${param('text', answer.body)}
 WHERE user_id = ${param('uuid', userId)} AND path = ${param('text', path)} AND key = ${param('text', key)}`);
}

/** Of records past their time: how many went. For a timer. */
export function forgetOldKeys(db: Queryable): Promise<number> {
  return db.run(raw(`DELETE FROM bylaw_idempotency WHERE created_at < now() - interval '24 hours'`));
}
