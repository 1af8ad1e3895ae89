/**
 * Idempotency keys of the version that kept them in `bylaw_idempotency`. The keys that it has kept
 * are honoured, and while nodes of both versions may run, each key is written into both tables, so
 * that either version finds the keys of the other. Only a database that has been upgraded from that
 * version has the table, and it is used for two days after the upgrade.
 */
import type { Queryable, Transaction } from '../database/contract.ts';
import { param, raw, sql, text, uuid } from '../sql.ts';
import { EXPIRY, type IdempotencyKey, type KeptRow, type StoredAnswer } from './stored-answer.ts';

export class EarlierKeys {
  private constructor() {}

  /** Undefined: no node of the earlier version has used the database within two days. */
  static async find(db: Queryable): Promise<EarlierKeys | undefined> {
    const [table] = await db.rows(sql`SELECT to_regclass(quote_ident(${text('bylaw_idempotency')})) IS NOT NULL`);
    if (table?.[0] !== 't') return undefined;
    // The earlier version wrote no history, so the first entry is the upgrade.
    const [row] = await db.rows(raw(`SELECT min(started_at) < now() - interval '48 hours' FROM bylaw_migrations`));
    return row?.[0] === 't' ? undefined : new EarlierKeys();
  }

  /**
   * Keeps the outline for nodes of the earlier version: it never deletes the content of a record.
   * Returns what is kept under the key already; a transaction that is about to keep it is waited for.
   */
  async keep(tx: Transaction, asked: IdempotencyKey, outline: StoredAnswer): Promise<KeptRow | undefined> {
    const { userId, path, key, bodyHash } = asked;
    const { status, headers, body } = outline;
    const count = await tx.run(sql`
      INSERT INTO bylaw_idempotency AS kept (user_id, path, key, body_hash, status, headers, body)
      SELECT id, ${text(path)}, ${text(key)}, ${text(bodyHash)}, ${param('int8', status)}, ${param('jsonb', headers)}, ${text(body)}
        FROM users
       WHERE id = ${uuid(userId)}
          ON CONFLICT (user_id, path, key) DO UPDATE
         SET body_hash = excluded.body_hash, status = excluded.status, headers = excluded.headers, body = excluded.body,
             created_at = now()
       WHERE kept.created_at < ${EXPIRY}`);
    return count === 0 ? this.find(tx, asked) : undefined;
  }

  async find(q: Queryable, { userId, path, key }: IdempotencyKey): Promise<KeptRow | undefined> {
    const [row] = await q.rows(sql`
      SELECT body_hash, json_build_object('status', status, 'headers', headers, 'body', body)
        FROM bylaw_idempotency
       WHERE user_id = ${uuid(userId)}
         AND path = ${text(path)}
         AND key = ${text(key)}
         AND status IS NOT NULL
         AND created_at >= ${EXPIRY}`);
    const [bodyHash, answer] = row ?? [];
    return bodyHash == null || answer == null ? undefined : { bodyHash, answer };
  }

  async forgetOld(q: Queryable): Promise<void> {
    await q.run(sql`DELETE FROM bylaw_idempotency WHERE created_at < ${EXPIRY}`);
  }
}
