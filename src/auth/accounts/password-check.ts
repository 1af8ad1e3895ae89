/** Checks passwords within limits, audits failures, and takes as long for an unknown account as for a known one. */
import type { Database } from '../../database/contract.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { type AuditEntry, type RequestClient, recordAudit } from '../audit-trail.ts';
import { LimitReached } from '../limits/attempt-counter.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { PasswordPool } from './passwords.ts';
import type { Proof } from './proofs.ts';
import type { Users } from './users.ts';

export interface PasswordClaim {
  readonly email: string;
  readonly password: string;
  readonly client: RequestClient;
}

export interface PasswordCheckParts {
  readonly db: Database;
  readonly users: Users;
  readonly passwords: PasswordPool;
  readonly limiter: Limiter;
}

export interface CheckedPassword {
  /** Undefined: an unknown account, a wrong password, or a disabled user. */
  readonly proof: Proof | undefined;
  /** The password is correct, but stored with weaker parameters than today's. */
  readonly rehash: boolean;
}

export class PasswordCheck {
  readonly #parts: PasswordCheckParts;

  constructor(parts: PasswordCheckParts) {
    this.#parts = parts;
  }

  /** `onFailure`: the audit entry of a failed attempt. Throws `rate_limited`, `unavailable`. */
  async run(claim: PasswordClaim, onFailure: Pick<AuditEntry, 'event' | 'sessionId'>): Promise<CheckedPassword> {
    const { limiter } = this.#parts;
    const { email, client } = claim;
    try {
      return await limiter.passwordAttempt(email, client, async (attempt) => {
        const outcome = await this.#verify(claim);
        if (outcome.reason === undefined) await attempt.succeeded();
        else {
          await attempt.failed();
          await this.#record(claim, { ...onFailure, userId: outcome.userId, detail: { reason: outcome.reason } });
        }
        return outcome;
      });
    } catch (error) {
      // Once per counter and window: a flood consists of refusals.
      if (error instanceof LimitReached && error.first) await this.#recordLimit(claim, error.limit);
      throw error;
    }
  }

  async #verify({ email, password }: PasswordClaim) {
    const { db, users, passwords } = this.#parts;
    const account = await users.accountOf(db, email);
    const { ok, rehash } = await passwords.verify(password, account?.passwordHash);
    const userId = account?.id;
    if (account === undefined) return { proof: undefined, rehash: false, userId, reason: 'unknown_email' };
    if (!ok) return { proof: undefined, rehash: false, userId, reason: 'wrong_password' };
    if (account.isDisabled) return { proof: undefined, rehash: false, userId, reason: 'disabled' };
    const { id, passwordHash } = account;
    return { proof: { userId: id, passwordHash, email: normalEmail(email) }, rehash, userId, reason: undefined };
  }

  async #recordLimit(claim: PasswordClaim, limit: string): Promise<void> {
    const account = await this.#parts.users.accountOf(this.#parts.db, claim.email);
    await this.#record(claim, { event: 'login_limited', userId: account?.id, detail: { limit } });
  }

  #record({ client }: PasswordClaim, entry: AuditEntry): Promise<void> {
    return recordAudit(this.#parts.db, { ...entry, client });
  }
}
