/** Changing a password, and what is proved by mail: that an address is one's own, and that one may set a new password. */
import { Problem } from '../problem.ts';
import { param, sql } from '../sql.ts';
import type { Database } from '../store/database/contract.ts';
import { touched } from '../store/records/touched.ts';
import { findAccount, storePassword } from './accounts.ts';
import { type Client, record } from './audit.ts';
import type { Authenticator } from './authenticate.ts';
import type { Caller } from './contract.ts';
import { dropProofs, issueProof, lookAtProof, type Purpose, useProof } from './email-tokens.ts';
import type { Limiter } from './limits.ts';
import type { Mailer } from './mail.ts';
import type { PasswordPool } from './passwords.ts';
import type { Sessions } from './sessions.ts';
import { normalEmail, type Users } from './users.ts';

export interface Recovery {
  /** All other sessions end. Throws `invalid_credentials` for a wrong old password, `validation_failed`, `rate_limited`. */
  changePassword(
    caller: Caller,
    request: { readonly password: string; readonly newPassword: string; readonly client: Client },
  ): Promise<void>;
  /** Says nothing of whether the address is somebody's. Throws `rate_limited`, `unavailable`. */
  requestReset(email: string, client: Client): Promise<void>;
  /** All sessions end. Throws `validation_failed`. */
  confirmReset(request: { readonly token: string; readonly password: string; readonly client: Client }): Promise<void>;
  requestVerification(caller: Caller, client: Client): Promise<void>;
  /** Throws `validation_failed`. */
  confirmVerification(request: { readonly token: string; readonly client: Client }): Promise<void>;
}

export interface RecoveryParts {
  readonly db: Database;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly passwords: PasswordPool;
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
  readonly mailer: Mailer;
  readonly baseUrl: () => string;
}

const badToken = (): Problem => {
  const detail = 'the token is not valid, has expired, or was used before; ask for a new one';
  return new Problem('validation_failed', detail, { errors: [{ pointer: '/token', code: 'invalid_token', detail }] });
};

export function createRecovery(parts: RecoveryParts): Recovery {
  const { db, users, sessions, passwords, authenticator, limiter, mailer, baseUrl } = parts;

  const checkNew = (password: string, email: string, pointer: string): void => {
    const fault = passwords.fault(password, email, pointer);
    if (fault !== undefined) throw new Problem('validation_failed', fault.detail, { errors: [fault] });
  };
  const wordsOf: Readonly<Record<Purpose, { readonly subject: string; readonly text: (token: string) => string }>> = {
    verify_email: {
      subject: 'Confirm your email address',
      text: (token) =>
        `Somebody, most likely you, asked to confirm that this address belongs to an account at ${baseUrl()}.\n\nTo confirm it, use this code within an hour:\n\n${token}\n\nIf it was not you, do nothing.\n`,
    },
    reset_password: {
      subject: 'Set a new password',
      text: (token) =>
        `Somebody, most likely you, asked to set a new password for the account with this address at ${baseUrl()}.\n\nTo set it, use this code within an hour:\n\n${token}\n\nIf it was not you, do nothing: the password stays as it is.\n`,
    },
  };
  const sendProof = (
    purpose: Purpose,
    find: () => Promise<{ readonly id: string; readonly email: string } | undefined>,
  ): void => {
    mailer.later(async () => {
      const user = await find();
      if (user === undefined) return undefined;
      const token = await issueProof(db, purpose, { userId: user.id, email: user.email });
      const { subject, text } = wordsOf[purpose];
      return { to: user.email, subject, text: text(token) };
    });
  };

  return {
    async changePassword(caller, { password, newPassword, client }) {
      const email = (await users.byId(db, caller.id))?.email ?? '';
      const attempt = await limiter.login(email, client);
      const account = await findAccount(db, email);
      const { ok } = await passwords.verify(password, account?.passwordHash);
      if (!ok || account === undefined) {
        await attempt.failed();
        await record(db, { event: 'password_change_failed', userId: caller.id, sessionId: caller.sessionId, client });
        throw new Problem('invalid_credentials', 'the present password is wrong', {
          errors: [{ pointer: '/password', code: 'invalid_credentials', detail: 'the present password is wrong' }],
        });
      }
      await attempt.succeeded();
      checkNew(newPassword, email, '/new_password');
      const hash = await passwords.hash(newPassword);
      const ended = await db.transaction(async (tx) => {
        await storePassword(tx, account.id, hash);
        await dropProofs(tx, 'reset_password', account.id);
        await record(tx, { event: 'password_changed', userId: account.id, sessionId: caller.sessionId, client });
        return sessions.endAll(tx, { userId: account.id, except: caller.sessionId });
      });
      if (ended.length > 0) await authenticator.userChanged(account.id);
    },

    async requestReset(email, client) {
      await limiter.reset(client, email);
      sendProof('reset_password', async () => {
        const account = await findAccount(db, email);
        if (account === undefined || account.disabled) return undefined;
        await record(db, { event: 'password_reset_requested', userId: account.id, client });
        return { id: account.id, email: normalEmail(email) };
      });
    },

    async confirmReset({ token, password, client }) {
      await limiter.reset(client);
      const proof = await lookAtProof(db, 'reset_password', token);
      if (proof === undefined) throw badToken();
      checkNew(password, proof.email, '/password');
      const hash = await passwords.hash(password);
      await db.transaction(async (tx) => {
        const used = await useProof(tx, 'reset_password', token);
        if (used === undefined) throw badToken();
        await storePassword(tx, used.userId, hash);
        // Who reads the mail of the address has it. Whoever held the account before that was proved is out, by every door.
        const wasUnproved = await tx.run(
          sql`UPDATE "users" SET email_verified = true, ${touched()} WHERE id = ${param('uuid', used.userId)} AND NOT email_verified`,
        );
        if (wasUnproved > 0) {
          await tx.run(sql`DELETE FROM "_auth_identities" WHERE user_id = ${param('uuid', used.userId)}`);
        }
        await dropProofs(tx, 'reset_password', used.userId);
        await sessions.endAll(tx, { userId: used.userId });
        await record(tx, { event: 'password_reset', userId: used.userId, client });
      });
      await authenticator.userChanged(proof.userId);
    },

    async requestVerification(caller, client) {
      const user = await users.byId(db, caller.id);
      if (user === undefined || user.email_verified) return;
      await limiter.reset(client, user.email);
      sendProof('verify_email', async () => user);
    },

    async confirmVerification({ token, client }) {
      await limiter.reset(client);
      const proof = await db.transaction(async (tx) => {
        const used = await useProof(tx, 'verify_email', token);
        if (used === undefined) throw badToken();
        await tx.run(
          sql`UPDATE "users" SET email_verified = true, ${touched()} WHERE id = ${param('uuid', used.userId)}`,
        );
        await dropProofs(tx, 'verify_email', used.userId);
        await record(tx, { event: 'email_verified', userId: used.userId, client });
        return used;
      });
      await authenticator.userChanged(proof.userId);
    },
  };
}
