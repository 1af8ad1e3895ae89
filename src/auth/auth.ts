/** The face of this room: everything that other rooms may ask of it. */
import { Problem } from '../problem.ts';
import type { Schema } from '../schema/model.ts';
import { param, sql } from '../sql.ts';
import type { Database } from '../store/database/contract.ts';
import { touched } from '../store/records/touched.ts';
import { type Accounts, createAccounts, findAccount } from './accounts.ts';
import { type AuditQuery, type AuditRow, type Client, readAudit, record } from './audit.ts';
import { type Authenticator, createAuthenticator } from './authenticate.ts';
import type { Caller } from './contract.ts';
import { createLimiter } from './limits.ts';
import { createMailer } from './mail.ts';
import { createOAuth, type OAuth } from './oauth.ts';
import { createPasswordPool, type PasswordPool } from './passwords.ts';
import { createRecovery, type Recovery } from './recovery.ts';
import { tellRoles } from './role-history.ts';
import { createSessions, type SessionRow } from './sessions.ts';
import { createTokens, type Tokens } from './tokens.ts';
import { checkEmail, createUsers, normalEmail, type User } from './users.ts';

export type { AuditRow, Client } from './audit.ts';
export type { Credentials } from './authenticate.ts';
export type { Caller } from './contract.ts';
export type { PasswordPool } from './passwords.ts';
export type { User } from './users.ts';

export interface AuthSettings {
  /** Read at each use: with port 0 it is known only once the service listens. */
  readonly baseUrl: string;
  /** `BYLAW_RATE_LIMIT=off` is for load tests. Default: on. */
  readonly rateLimit?: boolean;
  /** Mails are written in here where there is no SMTP server. Default: `./data`. */
  readonly data?: string;
  /** Without one, mails are written as files. */
  readonly smtpUrl?: string;
  /** Default: no-reply@ the host of the base URL. */
  readonly mailFrom?: string;
}

export interface Auth extends Pick<Accounts, 'register' | 'login' | 'refresh' | 'logout'>, Recovery, OAuth {
  readonly authenticate: Authenticator['authenticate'];
  readonly callerOfSession: Authenticator['callerOfSession'];
  /**
   * Tell it when a user's roles, fields or existence changed by another door than this room's: it acts on every node at once, not within a second.
   * `roles`: what was asked of them, for the audit trail.
   */
  userChanged(
    id: string,
    by?: { readonly caller: Caller; readonly client: Client; readonly roles?: unknown },
  ): Promise<void>;
  readonly jwks: Tokens['jwks'];
  /** The caller as every route shows users, read now. */
  me(caller: Caller): Promise<User>;
  /** The caller's own, newest first. */
  sessions(caller: Caller): Promise<readonly (SessionRow & { readonly current: boolean })[]>;
  /** Throws `not_found` for what is not the caller's own. */
  endSession(caller: Caller, id: string, client: Client): Promise<void>;
  /** Where mails go: `SMTP`, or the folder that they are written into. */
  readonly mailTo: string;
  readonly admin: Administration;
  close(): Promise<void>;
}

/** What the command line and the start may do: nobody is asked for a permission here. */
export interface Administration {
  /** At a start: makes the first admin where no such user exists. False: there is one, and nothing was changed. */
  ensureAdmin(email: string, password: string): Promise<boolean>;
  /** Throws `validation_failed`, `email_taken`. */
  addUser(user: {
    readonly email: string;
    readonly password: string;
    readonly roles: readonly string[];
  }): Promise<User>;
  /** Throws `not_found`, `validation_failed`. */
  changeRoles(
    email: string,
    change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  ): Promise<User>;
  /** Throws `not_found`. Ends all sessions. */
  setDisabled(email: string, disabled: boolean): Promise<User>;
  /** Returns the `kid` of the new key. */
  rotateKeys(): Promise<string>;
  audit(query: AuditQuery): Promise<readonly AuditRow[]>;
}

const PRUNE_EVERY_MS = 600_000;

function tellOnStderr(msg: string): void {
  process.stderr.write(`${JSON.stringify({ level: 'warn', time: new Date().toISOString(), pid: process.pid, msg })}\n`);
}

export async function createAuth(parts: {
  readonly db: Database;
  readonly schema: Schema;
  readonly config: AuthSettings;
  /** What an operator should know: mails that could not be sent, or that become files. Default: a line like those of the log. */
  readonly tell?: (message: string) => void;
  /** Default: argon2id at its full cost. */
  readonly passwords?: PasswordPool;
}): Promise<Auth> {
  const { db, schema, config } = parts;
  const users = createUsers(schema);
  const sessions = createSessions(schema, users);
  const tokens = await createTokens({ db, issuer: () => config.baseUrl, lifetime: schema.sessions.access });
  const authenticator = await createAuthenticator({ db, tokens, sessions, users });
  const passwords = parts.passwords ?? createPasswordPool();
  const limiter = createLimiter(db, config.rateLimit === false ? 'off' : schema.limits);
  const accounts = createAccounts({ db, schema, users, sessions, tokens, passwords, authenticator, limiter });
  const mailer = createMailer({
    smtpUrl: config.smtpUrl,
    mailFrom: config.mailFrom,
    dataDir: config.data ?? './data',
    get baseUrl() {
      return config.baseUrl;
    },
    tell: parts.tell ?? tellOnStderr,
  });
  const recovery = createRecovery({
    db,
    users,
    sessions,
    passwords,
    authenticator,
    limiter,
    mailer,
    baseUrl: () => config.baseUrl,
  });
  const oauth = createOAuth({ db, schema, users, accounts, limiter, baseUrl: () => config.baseUrl });

  const prune = async (): Promise<void> => {
    await sessions.prune(db);
    await limiter.prune();
    await db.run(sql`DELETE FROM "_auth_flows" WHERE expires_at < now()`);
    await db.run(sql`DELETE FROM "_auth_email_tokens" WHERE expires_at < now()`);
  };
  const pruning = setInterval(() => void prune().catch(() => undefined), PRUNE_EVERY_MS);
  pruning.unref();

  const checkRoles = (names: readonly string[]): void => {
    const unknown = names.filter((name) => !schema.roles.has(name));
    if (unknown.length === 0) return;
    const known = [...schema.roles.keys()].join(', ');
    throw new Problem(
      'validation_failed',
      `there is no role ${unknown.map((name) => `\`${name}\``).join(', ')}; the roles are ${known}`,
    );
  };
  const addUser: Administration['addUser'] = async ({ email, password, roles }) => {
    checkRoles(roles);
    checkEmail(email);
    const fault = passwords.fault(password, email, '/password');
    if (fault !== undefined) throw new Problem('validation_failed', fault.detail, { errors: [fault] });
    const passwordHash = await passwords.hash(password);
    const user = { email, emailVerified: true, roles: [...new Set(roles)], passwordHash };
    return users.insert(db, user, (tx, userId) => record(tx, { event: 'user_added', userId, detail: { roles } }));
  };
  const mustFind = async (email: string): Promise<User> => {
    const user = await users.byEmail(db, email);
    if (user === undefined) throw new Problem('not_found', `there is no user with the email \`${normalEmail(email)}\``);
    return user;
  };

  const admin: Administration = {
    async ensureAdmin(email, password) {
      if ((await findAccount(db, email)) !== undefined) return false;
      try {
        await addUser({ email, password, roles: [...new Set(['admin', ...schema.register.roles])] });
        return true;
      } catch (error) {
        // Another node was faster.
        if (error instanceof Problem && error.code === 'email_taken') return false;
        throw error;
      }
    },
    addUser,
    async changeRoles(email, { add, remove }) {
      checkRoles(add);
      const { id } = await mustFind(email);
      const changed = await db.transaction(async (tx) => {
        await tx.rows(sql`SELECT 1 FROM "users" WHERE id = ${param('uuid', id)} FOR UPDATE`);
        const user = (await users.byId(tx, id))!;
        const roles = [...new Set([...user.roles, ...add])].filter((name) => !remove.includes(name));
        await users.setRoles(tx, id, roles);
        return (await users.byId(tx, id))!;
      });
      await authenticator.userChanged(id);
      await tellRoles(db, id);
      return changed;
    },
    async setDisabled(email, disabled) {
      const { id } = await mustFind(email);
      const changed = await db.transaction(async (tx) => {
        await tx.run(
          sql`UPDATE "users" SET disabled = ${param('bool', disabled)}, ${touched()} WHERE id = ${param('uuid', id)}`,
        );
        if (disabled) await sessions.endAll(tx, { userId: id });
        await record(tx, { event: disabled ? 'user_disabled' : 'user_enabled', userId: id });
        return (await users.byId(tx, id))!;
      });
      await authenticator.userChanged(id);
      return changed;
    },
    async rotateKeys() {
      const kid = await tokens.rotate();
      await record(db, { event: 'key_rotated', detail: { kid } });
      await authenticator.keysChanged();
      return kid;
    },
    audit: (query) => readAudit(db, query),
  };

  return {
    authenticate: authenticator.authenticate,
    callerOfSession: authenticator.callerOfSession,
    async userChanged(id, by) {
      await authenticator.userChanged(id);
      await tellRoles(db, id, by && { actorId: by.caller.id, client: by.client });
    },
    jwks: tokens.jwks,
    register: accounts.register,
    login: accounts.login,
    refresh: accounts.refresh,
    logout: accounts.logout,
    async me(caller) {
      const user = await users.byId(db, caller.id);
      if (user === undefined) throw new Problem('unauthenticated', 'the user is gone');
      return user;
    },
    ...recovery,
    ...oauth,
    mailTo: mailer.to,
    async sessions(caller) {
      const rows = await sessions.list(db, caller.id);
      return rows.map((row) => ({ ...row, current: row.id === caller.sessionId }));
    },
    async endSession(caller, id, client) {
      await db.transaction(async (tx) => {
        if (!(await sessions.end(tx, { id, userId: caller.id })))
          throw new Problem('not_found', 'there is no such session of yours');
        await record(tx, { event: 'session_ended', userId: caller.id, sessionId: id, client });
      });
      await authenticator.sessionEnded(id);
    },
    admin,
    async close() {
      clearInterval(pruning);
      await mailer.close();
      await authenticator.close();
    },
  };
}
