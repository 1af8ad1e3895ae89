/**
 * Stores sessions as rows. A login inserts a row, its end deletes it; its cookie and refresh tokens are
 * opaque, and only their hashes are stored. Refresh tokens rotate (RFC 9700 §4.14.2): tokens of the
 * session's generation are live, and using one starts the next generation. That spends its siblings
 * too, so when several clients raced for successors, one line continues and a token of another line
 * is a theft.
 */
import { v7 } from 'uuid';
import { namedCells } from '../../database/cells.ts';
import type { Cells, Queryable, Transaction } from '../../database/contract.ts';
import type { Schema } from '../../schema/model/model.ts';
import { param, type Sql, seconds, sql, text, uuid } from '../../sql.ts';
import type { User, Users } from '../accounts/users.ts';
import { clip, type RequestClient } from '../audit-trail.ts';
import { hashSecret, isSecret, newSecret, pad } from './secrets.ts';

/** The token that was spent last may be sent again for this long: its client may have missed the answer. */
const RETRY_SECONDS = 10;
const MAX_LISTED = 1000;

export interface SessionSecrets {
  readonly sessionId: string;
  readonly userId: string;
  readonly cookie: string;
  readonly refreshToken: string;
  /** Seconds until the session ends if it is not used. */
  readonly expiresIn: number;
  /** Seconds until it ends in any case. */
  readonly endsIn: number;
}

export interface SessionStart {
  readonly userId: string;
  readonly method: 'password' | 'oauth';
  readonly client: RequestClient;
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

export type SessionKey = { readonly id: string } | { readonly cookie: string };

export type Refreshed =
  | { readonly outcome: 'ok'; readonly secrets: SessionSecrets }
  | { readonly outcome: 'unknown' }
  | { readonly outcome: 'reused'; readonly sessionId: string; readonly userId: string };

interface LiveSession {
  readonly id: string;
  readonly userId: string;
  readonly cookie: string;
  readonly generation: number;
  /** Seconds. */
  readonly age: number;
}

export class Sessions {
  readonly #users: Users;
  /** Seconds. */
  readonly #lifetime: number;
  readonly #idle: number;
  readonly #touchAfter: number;

  constructor({ sessions }: Schema, users: Users) {
    this.#users = users;
    this.#lifetime = sessions.refresh;
    this.#idle = Math.min(sessions.idle, sessions.refresh);
    this.#touchAfter = Math.min(60, this.#idle / 4);
  }

  async start(tx: Transaction, { userId, method, client }: SessionStart): Promise<SessionSecrets> {
    const id = v7();
    const cookie = newSecret();
    await tx.run(sql`
      INSERT INTO "_auth_sessions"
             (id, user_id, cookie_hash, created_at, last_used_at, method, user_agent, ip)
      VALUES (${uuid(id)}, ${uuid(userId)}, ${text(hashSecret(cookie))}, now(), now(),
              ${text(method)}, ${text(clip(client.userAgent))}, ${text(clip(client.ip))})`);
    return this.#issue(tx, { id, userId, cookie, generation: 0, age: 0 });
  }

  /** Rotates. A `reused` session has been ended. */
  async refresh(tx: Transaction, token: string): Promise<Refreshed> {
    if (!isSecret(token)) return { outcome: 'unknown' };
    const hash = hashSecret(token);
    const [found] = await tx.rows(sql`
      SELECT s.id, s.user_id, s.generation, t.generation, t.cookie_pad,
             coalesce(s.spent_hash = t.hash AND s.rotated_at > now() - ${seconds(RETRY_SECONDS)}, false),
             extract(epoch FROM now() - s.created_at),
             ${this.#isAlive()} AND NOT u.disabled
        FROM "_auth_refresh_tokens" t
        JOIN "_auth_sessions" s ON s.id = t.session_id
        JOIN "users" u ON u.id = s.user_id
       WHERE t.hash = ${text(hash)}
         FOR UPDATE OF s`);
    // The session's row is current once we hold the lock; the token's row never changes.
    const row = found && readRefresh(found);
    if (row === undefined || !row.isAlive) return { outcome: 'unknown' };
    const cookie = pad(token, row.cookiePad);
    if (row.tokenGeneration === row.generation) {
      const generation = row.generation + 1;
      await tx.run(sql`
        UPDATE "_auth_sessions"
           SET generation = ${param('int8', generation)},
               spent_hash = ${text(hash)},
               rotated_at = now(),
               last_used_at = now()
         WHERE id = ${uuid(row.id)}`);
      return { outcome: 'ok', secrets: await this.#issue(tx, { ...row, cookie, generation }) };
    }
    if (row.mayRetry) return { outcome: 'ok', secrets: await this.#issue(tx, { ...row, cookie }) };
    await tx.run(sql`DELETE FROM "_auth_sessions" WHERE id = ${uuid(row.id)}`);
    return { outcome: 'reused', sessionId: row.id, userId: row.userId };
  }

  /** Undefined: the session ended, is unknown, or belongs to a disabled user. */
  async stateOf(db: Queryable, key: SessionKey): Promise<SessionState | undefined> {
    const where = 'id' in key ? sql`s.id = ${uuid(key.id)}` : sql`s.cookie_hash = ${text(hashSecret(key.cookie))}`;
    const [cells] = await db.rows(sql`
      SELECT s.id, s.last_used_at < now() - ${seconds(this.#touchAfter)}, ${this.#users.columns('u')}
        FROM "_auth_sessions" s
        JOIN "users" u ON u.id = s.user_id
       WHERE ${where}
         AND ${this.#isAlive()}
         AND NOT u.disabled`);
    if (cells === undefined) return undefined;
    const { sessionId } = namedCells(cells, 'sessionId');
    if (cells[1] === 't') {
      await db.run(sql`UPDATE "_auth_sessions" SET last_used_at = now() WHERE id = ${uuid(sessionId)}`);
    }
    return { sessionId, user: this.#users.read(cells, 2) };
  }

  async list(db: Queryable, userId: string): Promise<readonly SessionRow[]> {
    const rows = await db.rows(sql`
      SELECT s.id, ${timestamp(sql`s.created_at`)}, ${timestamp(sql`s.last_used_at`)}, s.user_agent, s.ip
        FROM "_auth_sessions" s
       WHERE s.user_id = ${uuid(userId)}
         AND ${this.#isAlive()}
       ORDER BY s.id DESC
       LIMIT ${param('int8', MAX_LISTED)}`);
    return rows.map((cells) => {
      const [, , , user_agent = null, ip = null] = cells;
      return { ...namedCells(cells, 'id', 'created_at', 'last_used_at'), user_agent, ip };
    });
  }

  /** Returns false if that user has no such session. */
  async end(db: Queryable, id: string, userId: string): Promise<boolean> {
    const ended = await db.run(sql`
      DELETE FROM "_auth_sessions"
       WHERE id = ${uuid(id)}
         AND user_id = ${uuid(userId)}`);
    return ended > 0;
  }

  /** Returns how many ended. */
  endAll(db: Queryable, userId: string, except?: string): Promise<number> {
    return db.run(sql`
      DELETE FROM "_auth_sessions"
       WHERE user_id = ${uuid(userId)}
         AND id IS DISTINCT FROM ${uuid(except ?? null)}`);
  }

  async prune(db: Queryable): Promise<void> {
    await db.run(sql`
      DELETE FROM "_auth_sessions"
       WHERE created_at < now() - ${seconds(this.#lifetime)}
          OR last_used_at < now() - ${seconds(this.#idle)}`);
  }

  /** Tests the row `s`. */
  #isAlive(): Sql {
    return sql`s.created_at > now() - ${seconds(this.#lifetime)} AND s.last_used_at > now() - ${seconds(this.#idle)}`;
  }

  async #issue(tx: Transaction, session: LiveSession): Promise<SessionSecrets> {
    const { id: sessionId, userId, cookie, generation, age } = session;
    const refreshToken = newSecret();
    await tx.run(sql`
      INSERT INTO "_auth_refresh_tokens"
             (hash, session_id, generation, cookie_pad)
      VALUES (${text(hashSecret(refreshToken))}, ${uuid(sessionId)}, ${param('int8', generation)},
              ${text(pad(refreshToken, cookie))})`);
    const endsIn = Math.max(0, Math.floor(this.#lifetime - age));
    return { sessionId, userId, cookie, refreshToken, expiresIn: Math.min(this.#idle, endsIn), endsIn };
  }
}

const timestamp = (column: Sql): Sql => sql`to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

function readRefresh(cells: Cells) {
  const { id, userId, generation, tokenGeneration, cookiePad, mayRetry, age, isAlive } = namedCells(
    cells,
    'id',
    'userId',
    'generation',
    'tokenGeneration',
    'cookiePad',
    'mayRetry',
    'age',
    'isAlive',
  );
  return {
    id,
    userId,
    generation: Number(generation),
    tokenGeneration: Number(tokenGeneration),
    cookiePad,
    mayRetry: mayRetry === 't',
    age: Number(age),
    isAlive: isAlive === 't',
  };
}
