/** Registers accounts, logs users in and out, and shows, refreshes and ends their sessions. */
import type { Database, Transaction } from '../../database/contract.ts';
import { Problem } from '../../problem.ts';
import type { Schema } from '../../schema/model/model.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { AccessTokens } from '../sessions/access-tokens.ts';
import type { Authenticator } from '../sessions/authenticator.ts';
import type { SessionRow, SessionSecrets, SessionStart, Sessions } from '../sessions/sessions.ts';
import type { PasswordCheck, PasswordClaim } from './password-check.ts';
import { checkNewPassword, type PasswordPool } from './passwords.ts';
import type { User, Users } from './users.ts';

/** The response body of a login, and its cookie. */
export interface Issued {
  readonly body: {
    readonly access_token: string;
    readonly token_type: 'Bearer';
    readonly expires_in: number;
    readonly refresh_token: string;
    readonly refresh_expires_in: number;
    readonly user: User;
  };
  /** `maxAge` in seconds. */
  readonly cookie: { readonly value: string; readonly maxAge: number };
}

export interface ListedSession extends SessionRow {
  readonly current: boolean;
}

export interface AccountParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly tokens: AccessTokens;
  readonly passwords: PasswordPool;
  readonly passwordCheck: PasswordCheck;
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
}

export class Accounts {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Throws `validation_failed`, `email_taken`, `rate_limited`, `unavailable`. */
  async register({ email, password, client }: PasswordClaim): Promise<User> {
    const { db, limiter, passwords, schema, users } = this.#parts;
    await limiter.register(client, email);
    checkNewPassword(password, email, '/password');
    const passwordHash = await passwords.hash(password);
    const user = { email, emailVerified: false, roles: schema.register.roles, passwordHash };
    const made = await users.insert(user, (tx, userId) => recordAudit(tx, { event: 'register', userId, client }));
    return users.shown(db, made);
  }

  /** Throws `invalid_credentials` for every wrong input; `rate_limited`, `unavailable`. */
  async login(claim: PasswordClaim): Promise<Issued> {
    const { db, users, passwords, passwordCheck } = this.#parts;
    const { account, rehash } = await passwordCheck.run(claim, { event: 'login_failed' });
    if (account === undefined) throw new Problem('invalid_credentials', 'the email or the password is wrong');
    const newHash = rehash ? await passwords.hash(claim.password) : undefined;
    const secrets = await db.transaction(async (tx) => {
      if (newHash !== undefined) await users.storePassword(tx, account.id, newHash);
      return this.startSession(tx, { userId: account.id, method: 'password', client: claim.client });
    });
    return this.issue(secrets);
  }

  /** Throws `invalid_token`, `refresh_reused`, `rate_limited`. */
  async refresh(token: string, client: RequestClient): Promise<Issued> {
    const { db, sessions, limiter, authenticator } = this.#parts;
    await limiter.refresh(client);
    const refreshed = await db.transaction(async (tx) => {
      const outcome = await sessions.refresh(tx, token);
      if (outcome.outcome === 'reused') {
        const { userId, sessionId } = outcome;
        await recordAudit(tx, { event: 'refresh_reused', userId, sessionId, client });
      }
      return outcome;
    });
    switch (refreshed.outcome) {
      case 'ok':
        return this.issue(refreshed.secrets);
      case 'unknown':
        throw new Problem('invalid_token', 'the refresh token is not valid or has expired');
      case 'reused':
        await authenticator.sessionEnded(refreshed.sessionId);
        throw new Problem('refresh_reused', 'this refresh token was used before; its session has ended, sign in again');
    }
  }

  async logout({ principal: userId, sessionId }: Caller, client: RequestClient): Promise<void> {
    const { db, sessions, authenticator } = this.#parts;
    await db.transaction(async (tx) => {
      await sessions.end(tx, sessionId, userId);
      await recordAudit(tx, { event: 'logout', userId, sessionId, client });
    });
    await authenticator.sessionEnded(sessionId);
  }

  /** Reads the caller now, as every route shows users. */
  async me(caller: Caller): Promise<User> {
    const { db, users } = this.#parts;
    const user = await users.byId(db, caller.principal);
    if (user === undefined) throw new Problem('unauthenticated', 'the user no longer exists');
    return users.shown(db, user);
  }

  /** Lists the caller's own sessions, newest first. */
  async sessions(caller: Caller): Promise<readonly ListedSession[]> {
    const { db, sessions } = this.#parts;
    const rows = await sessions.list(db, caller.principal);
    return rows.map((row) => ({ ...row, current: row.id === caller.sessionId }));
  }

  /** Throws `not_found` for a session that is not the caller's own. */
  async endSession(caller: Caller, id: string, client: RequestClient): Promise<void> {
    const { db, sessions, authenticator } = this.#parts;
    await db.transaction(async (tx) => {
      if (!(await sessions.end(tx, id, caller.principal))) throw new Problem('not_found', 'you have no such session');
      await recordAudit(tx, { event: 'session_ended', userId: caller.principal, sessionId: id, client });
    });
    await authenticator.sessionEnded(id);
  }

  /** `start.userId`: a user who has been identified. */
  async startSession(tx: Transaction, start: SessionStart): Promise<SessionSecrets> {
    const secrets = await this.#parts.sessions.start(tx, start);
    const { userId, method, client } = start;
    const event = method === 'password' ? 'login' : 'oauth_login';
    await recordAudit(tx, { event, userId, sessionId: secrets.sessionId, client });
    return secrets;
  }

  async issue(secrets: SessionSecrets): Promise<Issued> {
    const { db, schema, users, tokens } = this.#parts;
    const { userId, sessionId, cookie, refreshToken, expiresIn } = secrets;
    const lifetime = Math.min(schema.sessions.access, secrets.endsIn);
    const expires = Math.floor(Date.now() / 1000) + lifetime;
    const user = await users.byId(db, userId);
    if (user === undefined) throw new Problem('invalid_token', 'the user no longer exists');
    return {
      body: {
        access_token: await tokens.sign({ userId, sessionId, expires }),
        token_type: 'Bearer',
        expires_in: lifetime,
        refresh_token: refreshToken,
        refresh_expires_in: expiresIn,
        user: await users.shown(db, user),
      },
      cookie: { value: cookie, maxAge: expiresIn },
    };
  }
}
