/** Register, log in, refresh, log out: what a person does to get a session and to end one. */
import { Problem } from '../problem.ts';
import type { Schema } from '../schema/model.ts';
import { param, sql } from '../sql.ts';
import type { Database, Queryable, Transaction } from '../store/database/contract.ts';
import { type Client, record } from './audit.ts';
import type { Authenticator } from './authenticate.ts';
import type { Caller } from './contract.ts';
import type { Limiter } from './limits.ts';
import type { PasswordPool } from './passwords.ts';
import type { SessionSecrets, Sessions } from './sessions.ts';
import type { Tokens } from './tokens.ts';
import { normalEmail, type User, type Users } from './users.ts';

/** What a login answers, and the cookie that goes with it. */
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

export interface LoginRequest {
  readonly email: string;
  readonly password: string;
  readonly client: Client;
}

export interface Accounts {
  /** Throws `validation_failed`, `email_taken`, `rate_limited`, `unavailable`. */
  register(request: LoginRequest): Promise<User>;
  /** Throws `invalid_credentials` whatever was wrong; `rate_limited`, `unavailable`. */
  login(request: LoginRequest): Promise<Issued>;
  /** Throws `invalid_token`, `refresh_reused`, `rate_limited`. */
  refresh(request: { readonly token: string; readonly client: Client }): Promise<Issued>;
  logout(caller: Caller, client: Client): Promise<void>;
  /** For a user whose identity is known otherwise. */
  startSession(
    tx: Transaction,
    who: { readonly userId: string; readonly method: 'password' | 'oauth'; readonly client: Client },
  ): Promise<SessionSecrets>;
  issue(secrets: SessionSecrets): Promise<Issued>;
}

export interface AccountParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  readonly passwords: PasswordPool;
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
}

interface Account {
  readonly id: string;
  readonly passwordHash: string | undefined;
  readonly disabled: boolean;
}

export async function findAccount(db: Queryable, email: string): Promise<Account | undefined> {
  // PostgreSQL takes no such text, and nobody has such an address.
  if (email.includes('\0') || !email.isWellFormed()) return undefined;
  const [cells] = await db.rows(
    sql`SELECT u.id, a.password_hash, u.disabled FROM "users" u LEFT JOIN "_auth_accounts" a ON a.user_id = u.id WHERE u.email = ${param('text', normalEmail(email))}`,
  );
  return cells && { id: cells[0]!, passwordHash: cells[1] ?? undefined, disabled: cells[2] === 't' };
}

export async function storePassword(db: Queryable, userId: string, hash: string): Promise<void> {
  await db.run(
    sql`INSERT INTO "_auth_accounts" (user_id, password_hash, password_changed_at) VALUES (${param('uuid', userId)}, ${param('text', hash)}, now()) ON CONFLICT (user_id) DO UPDATE SET password_hash = EXCLUDED.password_hash, password_changed_at = EXCLUDED.password_changed_at`,
  );
}

export function createAccounts(parts: AccountParts): Accounts {
  const { db, schema, users, sessions, tokens, passwords, authenticator, limiter } = parts;

  const issue = async (secrets: SessionSecrets): Promise<Issued> => {
    const expiresIn = Math.min(schema.sessions.access, secrets.endsIn);
    const expires = Math.floor(Date.now() / 1000) + expiresIn;
    const { userId, sessionId } = secrets;
    const user = await users.byId(db, userId);
    if (user === undefined) throw new Problem('invalid_token', 'the user is gone');
    return {
      body: {
        access_token: await tokens.sign({ userId, sessionId, expires }),
        token_type: 'Bearer',
        expires_in: expiresIn,
        refresh_token: secrets.refreshToken,
        refresh_expires_in: secrets.expiresIn,
        user,
      },
      cookie: { value: secrets.cookie, maxAge: secrets.expiresIn },
    };
  };

  const startSession: Accounts['startSession'] = async (tx, who) => {
    const secrets = await sessions.start(tx, who);
    const event = who.method === 'password' ? 'login' : 'oauth_login';
    await record(tx, { event, userId: who.userId, sessionId: secrets.sessionId, client: who.client });
    return secrets;
  };

  return {
    issue,
    startSession,

    async register({ email, password, client }) {
      await limiter.register(client);
      const fault = passwords.fault(password, email, '/password');
      if (fault !== undefined) throw new Problem('validation_failed', fault.detail, { errors: [fault] });
      const passwordHash = await passwords.hash(password);
      const user = { email, emailVerified: false, roles: schema.register.roles, passwordHash };
      return users.insert(db, user, (tx, userId) => record(tx, { event: 'register', userId, client }));
    },

    async login({ email, password, client }) {
      const attempt = await limiter.login(email, client);
      const account = await findAccount(db, email);
      const { ok, rehash } = await passwords.verify(password, account?.passwordHash);
      if (!ok || account === undefined || account.disabled) {
        await attempt.failed();
        const reason = account === undefined ? 'unknown_email' : account.disabled && ok ? 'disabled' : 'wrong_password';
        await record(db, { event: 'login_failed', ...(account && { userId: account.id }), client, detail: { reason } });
        throw new Problem('invalid_credentials', 'the email or the password is wrong');
      }
      await attempt.succeeded();
      const newHash = rehash ? await passwords.hash(password) : undefined;
      const secrets = await db.transaction(async (tx) => {
        if (newHash !== undefined) await storePassword(tx, account.id, newHash);
        return startSession(tx, { userId: account.id, method: 'password', client });
      });
      return issue(secrets);
    },

    async refresh({ token, client }) {
      await limiter.refresh(client);
      const result = await db.transaction(async (tx) => {
        const refreshed = await sessions.refresh(tx, token);
        if (refreshed.outcome === 'reused') {
          const { userId, sessionId } = refreshed;
          await record(tx, { event: 'refresh_reused', userId, sessionId, client });
        }
        return refreshed;
      });
      if (result.outcome === 'unknown')
        throw new Problem('invalid_token', 'the refresh token is not valid or has expired');
      if (result.outcome === 'reused') {
        await authenticator.sessionEnded(result.sessionId);
        throw new Problem('refresh_reused', 'this refresh token was used before; its session has ended, sign in again');
      }
      return issue(result.secrets);
    },

    async logout(caller, client) {
      await db.transaction(async (tx) => {
        await sessions.end(tx, { id: caller.sessionId, userId: caller.id });
        await record(tx, { event: 'logout', userId: caller.id, sessionId: caller.sessionId, client });
      });
      await authenticator.sessionEnded(caller.sessionId);
    },
  };
}
