/** With `register: { verify: true }`, a login needs a verified address. */
import type { Database, Transaction } from '../../database/contract.ts';
import { Problem } from '../../problem.ts';
import type { Schema } from '../../schema/model/model.ts';
import { seconds, sql, text, uuid } from '../../sql.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Limiter } from '../limits/limiter.ts';
import { PROOF_LIFETIME } from '../mail/email-tokens.ts';
import type { MailRequest, Outbox } from '../mail/outbox.ts';
import type { User, Users } from './users.ts';

export interface VerifiedLoginParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly limiter: Limiter;
  readonly outbox: Outbox;
}

/** Seconds between two mails that refused logins send. */
const PAUSE = 60;

export class VerifiedLogins {
  readonly #parts: VerifiedLoginParts;

  constructor(parts: VerifiedLoginParts) {
    this.#parts = parts;
  }

  /** Mails a token to a user who has just registered. Part of the transaction; `wake` the outbox after it. */
  async onRegistered(tx: Transaction, address: string, client: RequestClient): Promise<void> {
    if (this.#parts.schema.register.verify) await this.#parts.outbox.insert(tx, verifyRequest(address, client));
  }

  /** `userId`: a user who has been identified. Throws `email_unverified`, and mails a token. */
  async check(userId: string, client: RequestClient): Promise<void> {
    const { db, schema, users } = this.#parts;
    if (!schema.register.verify) return;
    const user = await users.byId(db, userId);
    if (user === undefined || user.email_verified) return;
    await recordAudit(db, { event: 'login_failed', userId, client, detail: { reason: 'email_unverified' } });
    await this.#mail(user, client);
    throw new Problem('email_unverified', 'verify your address first, with the token of the mail that was sent to it');
  }

  async #mail({ id, email }: User, client: RequestClient): Promise<void> {
    const { db, limiter, outbox } = this.#parts;
    try {
      await limiter.verification(id);
    } catch (error) {
      // The account has enough mails; the answer stays the same.
      if (error instanceof Problem && error.code === 'rate_limited') return;
      throw error;
    }
    await db.transaction(async (tx) => {
      // Concurrent logins of the user wait for each other here.
      await tx.rows(sql`SELECT 1 FROM "users" WHERE id = ${uuid(id)} FOR UPDATE`);
      await outbox.insert(tx, verifyRequest(email, client), sql`WHERE ${hasNoMail(id, email)}`);
    });
    outbox.wake();
  }
}

const verifyRequest = (address: string, client: RequestClient): MailRequest => ({
  kind: 'verify',
  address,
  detail: { client },
});

/** Tests that no such mail waits, and that none was sent in the last minute. */
const hasNoMail = (userId: string, address: string) => sql`
              NOT EXISTS (
                  SELECT 1
                    FROM "_auth_outbox"
                   WHERE kind = 'verify'
                     AND address = ${text(address)})
          AND NOT EXISTS (
                  SELECT 1
                    FROM "_auth_email_tokens"
                   WHERE user_id = ${uuid(userId)}
                     AND purpose = 'verify_email'
                     AND expires_at > now() + ${seconds(PROOF_LIFETIME - PAUSE)})`;
