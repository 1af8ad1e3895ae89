/**
 * Sessions are rows. A login makes one; its cookie and refresh tokens are opaque, and only their hashes are kept; ending it deletes it.
 * Refresh tokens rotate (RFC 9700 §4.14.2). Those of the session's generation are live; using one starts the next generation, which spends
 * its siblings too, so that however many clients raced for successors, one line goes on and another that shows up is a theft.
 */
import { v7 } from 'uuid';
import type { Schema } from '../schema/model.ts';
import { param, type Sql, sql } from '../sql.ts';
import type { Cells, Queryable, Transaction } from '../store/database/contract.ts';
import { type Client, clip } from './audit.ts';
import { hashSecret, isSecret, newSecret, pad } from './secrets.ts';
import type { User, Users } from './users.ts';

/** In which the token that was spent last may be shown again: the client never got the answer. */
const RETRY_SECONDS = 10;

export interface SessionSecrets {
  readonly sessionId: string;
  readonly userId: string;
  readonly cookie: string;
  readonly refreshToken: string;
  /** Seconds until the session is over if it is not used. */
  readonly expiresIn: number;
  /** Seconds until it is over in any case. */
  readonly endsIn: number;
}

export interface SessionState {
  readonly sessionId: string;
  readonly user: User;
}

export interface SessionRow {
  readonly id: string;
  readonly created_at: string;
  readonly last_used_at: string;
  readonly user_agent: string | null;
  readonly ip: string | null;
}

export type Refreshed =
  | { readonly outcome: 'ok'; readonly secrets: SessionSecrets }
  | { readonly outcome: 'unknown' }
  | { readonly outcome: 'reused'; readonly sessionId: string; readonly userId: string };

export interface Sessions {
  start(
    tx: Transaction,
    who: { readonly userId: string; readonly method: 'password' | 'oauth'; readonly client: Client },
  ): Promise<SessionSecrets>;
  /** Rotates. A `reused` session has been ended. */
  refresh(tx: Transaction, token: string): Promise<Refreshed>;
  /** Undefined: over, unknown, or of a user who is disabled. */
  stateOf(db: Queryable, by: { readonly id: string } | { readonly cookie: string }): Promise<SessionState | undefined>;
  list(db: Queryable, userId: string): Promise<readonly SessionRow[]>;
  /** False: there is no such session of that user. */
  end(db: Queryable, which: { readonly id: string; readonly userId: string }): Promise<boolean>;
  /** Returns the ids of those that ended. */
  endAll(db: Queryable, which: { readonly userId: string; readonly except?: string }): Promise<readonly string[]>;
  prune(db: Queryable): Promise<void>;
}

const uuid = (value: string) => param('uuid', value);
const text = (value: string | null) => param('text', value);
const seconds = (value: number): Sql => sql`${param('float8', value)} * interval '1 second'`;

export function createSessions({ sessions: lifetimes }: Schema, users: Users): Sessions {
  const absolute = lifetimes.refresh;
  const idle = Math.min(lifetimes.idle, lifetimes.refresh);
  const touchAfter = Math.min(60, idle / 4);
  const alive = sql`s.created_at > now() - ${seconds(absolute)} AND s.last_used_at > now() - ${seconds(idle)}`;

  const issue = async (
    tx: Transaction,
    session: {
      readonly id: string;
      readonly userId: string;
      readonly cookie: string;
      readonly generation: number;
      readonly age: number;
    },
  ): Promise<SessionSecrets> => {
    const refreshToken = newSecret();
    await tx.run(
      sql`INSERT INTO "_auth_refresh_tokens" (hash, session_id, generation, cookie_pad) VALUES (${text(hashSecret(refreshToken))}, ${uuid(session.id)}, ${param('int8', session.generation)}, ${text(pad(refreshToken, session.cookie))})`,
    );
    const endsIn = Math.max(0, Math.floor(absolute - session.age));
    const { id: sessionId, userId, cookie } = session;
    return { sessionId, userId, cookie, refreshToken, expiresIn: Math.min(idle, endsIn), endsIn };
  };

  return {
    async start(tx, { userId, method, client }) {
      const id = v7();
      const cookie = newSecret();
      await tx.run(
        sql`INSERT INTO "_auth_sessions" (id, user_id, cookie_hash, created_at, last_used_at, method, user_agent, ip) VALUES (${uuid(id)}, ${uuid(userId)}, ${text(hashSecret(cookie))}, now(), now(), ${text(method)}, ${text(clip(client.userAgent))}, ${text(clip(client.ip))})`,
      );
      return issue(tx, { id, userId, cookie, generation: 0, age: 0 });
    },

    async refresh(tx, token) {
      if (!isSecret(token)) return { outcome: 'unknown' };
      const hash = hashSecret(token);
      const [found] = await tx.rows(
        sql`SELECT s.id, s.user_id, s.generation, t.generation, t.cookie_pad, coalesce(s.spent_hash = t.hash AND s.rotated_at > now() - ${seconds(RETRY_SECONDS)}, false), extract(epoch FROM now() - s.created_at), ${alive} AND NOT u.disabled FROM "_auth_refresh_tokens" t JOIN "_auth_sessions" s ON s.id = t.session_id JOIN "users" u ON u.id = s.user_id WHERE t.hash = ${text(hash)} FOR UPDATE OF s`,
      );
      // The lock is had after a wait, but the row of `t` is read as it was before: it never changes.
      const row = found && readRefresh(found);
      if (row === undefined || !row.alive) return { outcome: 'unknown' };
      const cookie = pad(token, row.cookiePad);
      if (row.tokenGeneration === row.generation) {
        const generation = row.generation + 1;
        await tx.run(
          sql`UPDATE "_auth_sessions" SET generation = ${param('int8', generation)}, spent_hash = ${text(hash)}, rotated_at = now(), last_used_at = now() WHERE id = ${uuid(row.id)}`,
        );
        return { outcome: 'ok', secrets: await issue(tx, { ...row, cookie, generation }) };
      }
      if (row.mayRetry) return { outcome: 'ok', secrets: await issue(tx, { ...row, cookie }) };
      await tx.run(sql`DELETE FROM "_auth_sessions" WHERE id = ${uuid(row.id)}`);
      return { outcome: 'reused', sessionId: row.id, userId: row.userId };
    },

    async stateOf(db, by) {
      const where = 'id' in by ? sql`s.id = ${uuid(by.id)}` : sql`s.cookie_hash = ${text(hashSecret(by.cookie))}`;
      const [cells] = await db.rows(
        sql`SELECT s.id, s.last_used_at < now() - ${seconds(touchAfter)}, ${users.columns('u')} FROM "_auth_sessions" s JOIN "users" u ON u.id = s.user_id WHERE ${where} AND ${alive} AND NOT u.disabled`,
      );
      if (cells === undefined) return undefined;
      const sessionId = cells[0]!;
      if (cells[1] === 't') {
        await db.run(sql`UPDATE "_auth_sessions" SET last_used_at = now() WHERE id = ${uuid(sessionId)}`);
      }
      return { sessionId, user: users.read(cells, 2) };
    },

    async list(db, userId) {
      const rows = await db.rows(
        sql`SELECT s.id, ${instant(sql`s.created_at`)}, ${instant(sql`s.last_used_at`)}, s.user_agent, s.ip FROM "_auth_sessions" s WHERE s.user_id = ${uuid(userId)} AND ${alive} ORDER BY s.id DESC LIMIT 1000`,
      );
      return rows.map(([id, created_at, last_used_at, user_agent, ip]) => ({
        id: id!,
        created_at: created_at!,
        last_used_at: last_used_at!,
        user_agent: user_agent!,
        ip: ip!,
      }));
    },

    async end(db, { id, userId }) {
      return (await db.run(sql`DELETE FROM "_auth_sessions" WHERE id = ${uuid(id)} AND user_id = ${uuid(userId)}`)) > 0;
    },

    async endAll(db, { userId, except }) {
      const rows = await db.rows(
        sql`DELETE FROM "_auth_sessions" WHERE user_id = ${uuid(userId)} AND id IS DISTINCT FROM ${param('uuid', except ?? null)} RETURNING id`,
      );
      return rows.map(([id]) => id!);
    },

    async prune(db) {
      await db.run(
        sql`DELETE FROM "_auth_sessions" WHERE created_at < now() - ${seconds(absolute)} OR last_used_at < now() - ${seconds(idle)}`,
      );
    },
  };
}

export const instant = (column: Sql): Sql =>
  sql`to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

function readRefresh([id, userId, generation, tokenGeneration, cookiePad, mayRetry, age, alive]: Cells) {
  return {
    id: id!,
    userId: userId!,
    generation: Number(generation),
    tokenGeneration: Number(tokenGeneration),
    cookiePad: cookiePad!,
    mayRetry: mayRetry === 't',
    age: Number(age),
    alive: alive === 't',
  };
}
