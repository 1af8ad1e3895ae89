/**
 * Changes passwords, verifies email addresses, and resets passwords by a token from a mail.
 */

import { Problem, problemOfError } from '../../problem.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import { dropProofs, findProof, useProof } from '../mail/email-tokens.ts';
import type { AccountParts } from './accounts.ts';
import type { Administrator } from './administration.ts';
import { checkNewPassword } from './passwords.ts';
import { lockProved } from './proofs.ts';
import { claimByReset, dropWaysIn, markClaim } from './ways-in.ts';

export interface PasswordChange {
  readonly password: string;
  readonly newPassword: string;
  readonly client: RequestClient;
}

export interface ResetConfirmation {
  readonly token: string;
  readonly password: string;
  readonly client: RequestClient;
}

type RecoveryParts = Omit<AccountParts, 'schema' | 'tokens'>;

/** The tokens that end with a password. */
const PASSWORD_PROOFS = ['reset_password', 'change_email'] as const;

export class Recovery {
  readonly #parts: RecoveryParts;

  constructor(parts: RecoveryParts) {
    this.#parts = parts;
  }

  /**
   * Ends all other sessions. Throws `invalid_credentials` for a wrong old password,
   * `validation_failed`, `rate_limited`.
   */
  async changePassword(caller: Caller, { password, newPassword, client }: PasswordChange): Promise<void> {
    const { db, users, sessions, passwords, passwordCheck, authenticator } = this.#parts;
    const { sessionId } = caller;
    const email = (await users.byId(db, caller.principal))?.email ?? '';
    const claim = { email, password, client };
    const { proof } = await passwordCheck.run(claim, { event: 'password_change_failed', sessionId });
    if (proof === undefined) throw wrongPresentPassword();
    const { userId } = proof;
    checkNewPassword(newPassword, email, '/new_password');
    const hash = await passwords.hash(newPassword);
    const ended = await db.transaction(async (tx) => {
      if ((await lockProved(tx, proof)) === undefined) throw wrongPresentPassword();
      await users.storePassword(tx, userId, hash);
      for (const purpose of PASSWORD_PROOFS) await dropProofs(tx, purpose, userId);
      await recordAudit(tx, { event: 'password_changed', userId, sessionId, client });
      return sessions.endAll(tx, userId, sessionId);
    });
    if (ended > 0) await authenticator.userChanged(userId);
  }

  /** Hides whether the address belongs to an account. Throws `rate_limited`. */
  async requestReset(email: string, client: RequestClient): Promise<void> {
    const { limiter, outbox } = this.#parts;
    await limiter.mail(client);
    await outbox.add({ kind: 'reset', address: normalEmail(email), detail: { client } });
  }

  /** Mails a token to a user on behalf of an administrator. Throws `not_found`, `rate_limited`. */
  async requestResetOf(id: string, { caller, client }: Administrator): Promise<void> {
    const { db, users, limiter, outbox } = this.#parts;
    const user = await users.byId(db, id);
    if (user === undefined) throw new Problem('not_found', 'no user has this id');
    await limiter.mail(client);
    await outbox.add({ kind: 'reset', address: user.email, detail: { client, actorId: caller.principal } });
  }

  /** Ends all sessions. Throws `validation_failed`, `rate_limited`. */
  async confirmReset({ token, password, client }: ResetConfirmation): Promise<void> {
    const { db, users, sessions, passwords, authenticator } = this.#parts;
    const proof = await findProof(db, 'reset_password', token);
    if (proof === undefined) throw await this.#badProof(client);
    checkNewPassword(password, proof.email, '/password');
    const hash = await passwords.hash(password);
    const isReset = await db.transaction(async (tx) => {
      const used = await useProof(tx, 'reset_password', token);
      if (used === undefined) return false;
      const { userId } = used;
      // In the order in which `lockProved` locks the rows.
      const isFirst = await users.proveEmail(tx, userId);
      await users.storePassword(tx, userId, hash);
      // Only the owner of the address reads its mail. A stranger who held the account before that proof
      // loses every way in.
      if ((await claimByReset(tx, userId)) || isFirst) await dropWaysIn(tx, userId, { keepsFactor: !isFirst });
      for (const purpose of PASSWORD_PROOFS) await dropProofs(tx, purpose, userId);
      await sessions.endAll(tx, userId);
      await recordAudit(tx, { event: 'password_reset', userId, client });
      return true;
    });
    // A concurrent use of the token was faster.
    if (!isReset) throw await this.#badProof(client);
    await authenticator.userChanged(proof.userId);
  }

  /** Throws `rate_limited`. */
  async requestVerification(caller: Caller, client: RequestClient): Promise<void> {
    const { db, users, limiter, outbox } = this.#parts;
    const user = await users.byId(db, caller.principal);
    if (user === undefined || user.email_verified) return;
    await limiter.verification(user.id);
    await outbox.add({ kind: 'verify', address: user.email, detail: { client, sessionId: caller.sessionId } });
  }

  /**
   * Outside of a session of the account, its reader may be another person than its maker: what the maker added ends,
   * but for the password, or the first identity of an account without one, and the next proof by the mailbox ends that,
   * too. Throws `validation_failed`, `rate_limited`.
   */
  async confirmVerification(token: string, caller: Caller | undefined, client: RequestClient): Promise<void> {
    const { db, users, authenticator } = this.#parts;
    const proof = await db.transaction(async (tx) => {
      const used = await useProof(tx, 'verify_email', token);
      if (used === undefined) return undefined;
      const isFirst = await users.proveEmail(tx, used.userId);
      if (isFirst && !(caller?.kind === 'user' && caller.principal === used.userId)) {
        await dropWaysIn(tx, used.userId, { keepsFactor: false, keepsFirstIdentity: true });
        await markClaim(tx, used.userId, false);
      }
      await dropProofs(tx, 'verify_email', used.userId);
      await recordAudit(tx, { event: 'email_verified', userId: used.userId, client });
      return used;
    });
    if (proof === undefined) throw await this.#badProof(client);
    await authenticator.userChanged(proof.userId);
  }

  /** Throws `rate_limited`. */
  async #badProof(client: RequestClient): Promise<Problem> {
    await this.#parts.limiter.wrongToken(client);
    return badProof();
  }
}

function wrongPresentPassword(): Problem {
  const detail = 'the present password is wrong';
  return problemOfError('invalid_credentials', { pointer: '/password', code: 'invalid_credentials', detail });
}

function badProof(): Problem {
  const detail = 'the token is not valid, has expired, or was used before; ask for a new one';
  return problemOfError('validation_failed', { pointer: '/token', code: 'invalid_token', detail });
}
