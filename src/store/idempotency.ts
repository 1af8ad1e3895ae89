/**
 * Answers kept under an idempotency key, in the transaction of the write itself: both happen, or neither.
 * An earlier build kept status, headers and body in `bylaw_idempotency`; what it left there expires unread.
 */

import { raw, type Sql, sql, text, uuid } from '../sql.ts';
import type { Queryable, Transaction } from './database/contract.ts';
import { Refusal } from './refusal.ts';

export const IDEMPOTENCY_TABLES: readonly Sql[] = [
  raw(`CREATE TABLE IF NOT EXISTS "bylaw_kept_answers" (
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  path text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  body_hash text NOT NULL,
  answer text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, path, key)
)`),
  raw('CREATE INDEX IF NOT EXISTS "bylaw_kept_answers_created_at" ON "bylaw_kept_answers" (created_at)'),
];

export interface IdempotencyKey {
  readonly userId: string;
  readonly path: string;
  readonly key: string;
  /** Of the request body, as received. */
  readonly bodyHash: string;
}

/**
 * The kept answer, an opaque text; undefined when this transaction is the first under the key, and
 * must call `keepAnswer` before it ends. A second request in flight waits here until the first
 * ends; if the first fails, the second takes its place.
 */
export async function claimKey(tx: Transaction, asked: IdempotencyKey): Promise<string | undefined> {
  const { userId, path, key, bodyHash } = asked;
  // An expired row is taken over. A row without an answer is this transaction's own: no other
  // transaction commits one.
  const [row] = await tx.rows(sql`
    INSERT INTO bylaw_kept_answers AS kept (user_id, path, key, body_hash)
    VALUES (${uuid(userId)}, ${text(path)}, ${text(key)}, ${text(bodyHash)})
        ON CONFLICT (user_id, path, key) DO UPDATE
       SET body_hash = CASE WHEN ${EXPIRED} THEN excluded.body_hash ELSE kept.body_hash END,
           answer = CASE WHEN ${EXPIRED} THEN NULL ELSE kept.answer END,
           created_at = CASE WHEN ${EXPIRED} THEN now() ELSE kept.created_at END
    RETURNING body_hash, answer`);
  const [keptHash, answer] = row!;
  if (answer === null) return undefined;
  if (keptHash !== bodyHash) {
    throw new Refusal('idempotency_mismatch', 'this Idempotency-Key was used with another body');
  }
  return answer;
}

const EXPIRED = raw(`kept.created_at < now() - interval '24 hours'`);

export async function keepAnswer(
  tx: Transaction,
  { userId, path, key }: IdempotencyKey,
  answer: string,
): Promise<void> {
  await tx.run(sql`
    UPDATE bylaw_kept_answers
       SET answer = ${text(answer)}
     WHERE user_id = ${uuid(userId)}
       AND path = ${text(path)}
       AND key = ${text(key)}`);
}

/** Deletes expired keys and returns their number. Called by a timer. */
export function forgetOldKeys(db: Queryable): Promise<number> {
  return db.run(raw(`DELETE FROM bylaw_kept_answers WHERE created_at < now() - interval '24 hours'`));
}
