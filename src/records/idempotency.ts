/**
 * Answers kept under an idempotency key, in the transaction of the write itself: both happen, or neither.
 * An earlier build kept status, headers and body in `bylaw_idempotency`; what it left there expires unread.
 */

import type { Queryable, Transaction } from '../database/contract.ts';
import { Refusal } from '../refusal.ts';
import { raw, sql, text, uuid } from '../sql.ts';

export interface IdempotencyKey {
  readonly userId: string;
  readonly path: string;
  readonly key: string;
  /** The hash of the request body, as received. */
  readonly bodyHash: string;
}

/**
 * Keeps the answer, an opaque text, in the same transaction as the writes, as its last statement. A
 * second request in flight waits here until the first ends; if the first fails, the second takes its
 * place. Returns the answer that another transaction has kept under the key: then this one must be
 * undone. Throws `idempotency_mismatch`, as `keptAnswer`.
 */
export async function keepAnswer(tx: Transaction, asked: IdempotencyKey, answer: string): Promise<string | undefined> {
  const { userId, path, key, bodyHash } = asked;
  // An expired row is taken over. A user who has just deleted themselves keeps nothing.
  const count = await tx.run(sql`
    INSERT INTO bylaw_kept_answers AS kept (user_id, path, key, body_hash, answer)
    SELECT id, ${text(path)}, ${text(key)}, ${text(bodyHash)}, ${text(answer)}
      FROM users
     WHERE id = ${uuid(userId)}
        ON CONFLICT (user_id, path, key) DO UPDATE
       SET body_hash = excluded.body_hash, answer = excluded.answer, created_at = now()
     WHERE kept.created_at < ${EXPIRY}`);
  return count === 0 ? keptAnswer(tx, asked) : undefined;
}

/** The answer to the first request under the key. Throws `idempotency_mismatch` if that had another body. */
export async function keptAnswer(db: Queryable, asked: IdempotencyKey): Promise<string | undefined> {
  const { userId, path, key, bodyHash } = asked;
  const [row] = await db.rows(sql`
    SELECT body_hash, answer
      FROM bylaw_kept_answers
     WHERE user_id = ${uuid(userId)}
       AND path = ${text(path)}
       AND key = ${text(key)}
       AND created_at >= ${EXPIRY}`);
  if (row === undefined) return undefined;
  const [keptHash, answer] = row;
  if (keptHash !== bodyHash) {
    throw new Refusal('idempotency_mismatch', 'this Idempotency-Key was used with another body');
  }
  return answer ?? undefined;
}

const EXPIRY = raw(`now() - interval '24 hours'`);

/** Deletes expired keys and returns their number. Called by a timer. */
export function forgetOldKeys(db: Queryable): Promise<number> {
  return db.run(sql`DELETE FROM bylaw_kept_answers WHERE created_at < ${EXPIRY}`);
}
