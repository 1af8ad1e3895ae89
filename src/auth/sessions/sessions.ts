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
import { datetimeOf } from '../../policy/values.ts';
import type { Schema } from '../../schema/model/model.ts';
import { apiTime, param, raw, rowFrom, type Sql, seconds, sql, text, uuid } from '../../sql.ts';
import type { SessionFacts, User, Users } from '../accounts/users.ts';
import { clip, type RequestClient } from '../audit-trail.ts';
import { formerGuestOf } from './former-guests.ts';
import { hashSecret, isSecret, newSecret, pad } from './secrets.ts';

/** The token that was spent last may be sent again for this long: its client may have missed the answer. */
const RETRY_SECONDS = 10;
const MAX_LISTED = 1000;
/** Seconds that the session of a guest lasts at most. */
const GUEST_LIFETIME = 86_400;

export interface SessionSecrets extends SessionFacts {
  readonly sessionId: string;
  readonly kind: SessionKind;
  /** The user, or the guest's session itself. */
  readonly principal: string;
  readonly cookie: string;
  readonly refreshToken: string;
  /** Seconds until the session ends if it is not used. */
  readonly expiresIn: number;
  /** Seconds until it ends in any case. */
  readonly endsIn: number;
}

type SessionKind = 'user' | 'guest';

export interface SessionStart {
  /** Undefined: a guest. */
  readonly userId: string | undefined;
  readonly method: 'password' | 'oauth' | 'code' | 'passkey' | 'guest';
  /** Default: false. */
  readonly secondFactor?: boolean;
  readonly client: RequestClient;
}

export interface SessionState extends SessionFacts {
  readonly sessionId: string;
  /** Undefined: a guest. */
  readonly user: User | undefined;
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
  | { readonly outcome: 'reused'; readonly sessionId: string; readonly principal: string };

/** A session that is not stored yet. */
export interface NewSession {
  readonly secrets: SessionSecrets;
  /**
   * Parts of a WITH, because each statement costs a way to the database and back.
   *
   * @param from one of its parts, without whose row nothing is stored
   */
  readonly storing: (from?: Sql) => Sql;
}

interface LiveSession extends SessionFacts {
  readonly id: string;
  readonly kind: SessionKind;
  readonly principal: string;
  readonly cookie: string;
  readonly generation: number;
  /** Seconds. */
  readonly age: number;
}

export class Sessions {
  readonly #users: Users;
  readonly admitsGuests: boolean;
  /** Seconds. */
  readonly #lifetime: number;
  readonly #idle: number;
  readonly #touchAfter: number;

  constructor({ sessions, guests }: Schema, users: Users) {
    this.#users = users;
    this.#lifetime = sessions.refresh;
    this.#idle = Math.min(sessions.idle, sessions.refresh);
    this.admitsGuests = guests;
    this.#touchAfter = Math.min(60, this.#idle / 4);
  }

  /** @param noteOf the statement that records the session */
  make(
    { userId, method, secondFactor = false, client }: SessionStart,
    noteOf: (session: Pick<SessionSecrets, 'sessionId' | 'principal'>, from: Sql | undefined) => Sql,
  ): NewSession {
    const id = v7();
    const kind = userId === undefined ? 'guest' : 'user';
    const principal = userId ?? id;
    const cookie = newSecret();
    const row = sql`${uuid(id)}, ${uuid(userId ?? null)}, ${text(kind)}, ${uuid(principal)}, ${text(hashSecret(cookie))},
                     now(), now(), ${text(method)}, ${param('bool', secondFactor)}, ${text(clip(client.userAgent))}, ${text(clip(client.ip))}`;
    const facts = { secondFactor, signedInAt: datetimeOf(new Date()) };
    const { secrets, token } = this.#issued({ id, kind, principal, cookie, generation: 0, age: 0, ...facts });
    const storing = (from?: Sql): Sql => sql`
             "session" AS (
             INSERT INTO "_auth_sessions"
                    (id, user_id, kind, principal, cookie_hash, created_at, last_used_at, method, second_factor, user_agent, ip)
             ${rowFrom(row, from)}),
             "noted" AS (${noteOf(secrets, from)}),
             "token" AS (${storingToken(token, from)})`;
    return { secrets, storing };
  }

  /** Rotates. A `reused` session has been ended. */
  async refresh(tx: Transaction, token: string): Promise<Refreshed> {
    if (!isSecret(token)) return { outcome: 'unknown' };
    const hash = hashSecret(token);
    const [found] = await tx.rows(sql`
      SELECT s.id, s.kind, coalesce(s.principal, s.user_id), s.generation, t.generation, t.cookie_pad,
             coalesce(s.spent_hash = t.hash AND s.rotated_at > now() - ${seconds(RETRY_SECONDS)}, false),
             extract(epoch FROM now() - s.created_at), s.second_factor, ${SIGNED_IN_AT},
             ${this.#isAlive()} AND ${NOT_DISABLED}
        FROM "_auth_refresh_tokens" t
        JOIN "_auth_sessions" s ON s.id = t.session_id
        LEFT JOIN "users" u ON u.id = s.user_id
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
    return { outcome: 'reused', sessionId: row.id, principal: row.principal };
  }

  /** Undefined: the session ended, is unknown, or belongs to a disabled user. */
  async stateOfCookie(db: Queryable, cookie: string): Promise<SessionState | undefined> {
    const [state] = await this.#statesWhere(db, sql`s.cookie_hash = ${text(hashSecret(cookie))}`);
    return state;
  }

  /** The states of sessions by their ids. A session that ended, is unknown, or belongs to a disabled user has none. */
  async statesOf(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, SessionState>> {
    const states = await this.#statesWhere(db, sql`s.id = ANY(${param('uuid[]', ids)})`);
    return new Map(states.map((state) => [state.sessionId, state]));
  }

  async #statesWhere(db: Queryable, where: Sql): Promise<readonly SessionState[]> {
    const isUnused = sql`s.last_used_at < now() - ${seconds(this.#touchAfter)}`;
    const rows = await db.rows(sql`
      SELECT s.id, ${isUnused}, s.user_id, s.second_factor,
             ${SIGNED_IN_AT}, ${formerGuestOf(sql`s.user_id`)}, ${this.#users.columns('u')}
        FROM "_auth_sessions" s
        LEFT JOIN "users" u ON u.id = s.user_id
       WHERE ${where}
         AND ${this.#isAlive()}
         AND ${NOT_DISABLED}`);
    const unused = rows.flatMap(([id, isOld]) => (isOld === 't' ? [id!] : []));
    if (unused.length > 0)
      await db.run(sql`
        UPDATE "_auth_sessions" s
           SET last_used_at = now()
         WHERE s.id = ANY(${param('uuid[]', unused)})
           AND ${isUnused}`);
    return rows.map((cells) => this.#stateOf(cells));
  }

  #stateOf(cells: Cells): SessionState {
    return {
      sessionId: namedCells(cells, 'sessionId').sessionId,
      user: cells[2] === null ? undefined : this.#users.read(cells, 6),
      secondFactor: cells[3] === 't',
      signedInAt: cells[4]!,
      formerGuest: cells[5] ?? undefined,
    };
  }

  /** Renews the time of the sign-in, which it returns; undefined: the session has ended. */
  async confirm(db: Queryable, id: string, secondFactor: boolean): Promise<string | undefined> {
    const renewed = await db.run(sql`
      UPDATE "_auth_sessions" s
         SET signed_in_at = now(),
             second_factor = s.second_factor OR ${param('bool', secondFactor)}
       WHERE s.id = ${uuid(id)}`);
    if (renewed === 0) return undefined;
    // Citus prints no time in RETURNING.
    const [cells] = await db.rows(sql`
      SELECT ${apiTime(sql`s.signed_in_at`)}
        FROM "_auth_sessions" s
       WHERE s.id = ${uuid(id)}`);
    return cells?.[0] ?? undefined;
  }

  async list(db: Queryable, userId: string): Promise<readonly SessionRow[]> {
    const rows = await db.rows(sql`
      SELECT s.id, ${apiTime(sql`s.created_at`)}, ${apiTime(sql`s.last_used_at`)}, s.user_agent, s.ip
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

  /** Returns false if that principal has no such session. */
  async end(db: Queryable, id: string, principal: string): Promise<boolean> {
    const ended = await db.run(sql`
      DELETE FROM "_auth_sessions"
       WHERE id = ${uuid(id)}
         AND coalesce(principal, user_id) = ${uuid(principal)}`);
    return ended > 0;
  }

  /** Voids sign-ins that wait for a second factor or an app, too. Returns how many sessions ended. */
  async endAll(db: Queryable, userId: string, except?: string): Promise<number> {
    await db.run(sql`DELETE FROM "_auth_oauth_codes" WHERE user_id = ${uuid(userId)}`);
    await db.run(sql`DELETE FROM "_auth_challenges" WHERE user_id = ${uuid(userId)}`);
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
    const isInTime = sql`s.created_at > now() - ${seconds(this.#lifetime)} AND s.last_used_at > now() - ${seconds(this.#idle)}`;
    if (!this.admitsGuests) return sql`${isInTime} AND s.kind = 'user'`;
    return sql`${isInTime} AND (s.kind = 'user' OR s.created_at > now() - ${seconds(GUEST_LIFETIME)})`;
  }

  async #issue(tx: Transaction, session: LiveSession): Promise<SessionSecrets> {
    const { secrets, token } = this.#issued(session);
    await tx.run(storingToken(token));
    return secrets;
  }

  /** With the row of the refresh token. */
  #issued(session: LiveSession): { readonly secrets: SessionSecrets; readonly token: Sql } {
    const { id: sessionId, kind, principal, cookie, generation, age, secondFactor, signedInAt } = session;
    const refreshToken = newSecret();
    const token = sql`${text(hashSecret(refreshToken))}, ${uuid(sessionId)}, ${param('int8', generation)}, ${text(pad(refreshToken, cookie))}`;
    const lifetime = kind === 'guest' ? Math.min(GUEST_LIFETIME, this.#lifetime) : this.#lifetime;
    const endsIn = Math.max(0, Math.floor(lifetime - age));
    const expiresIn = Math.min(this.#idle, endsIn);
    const times = { expiresIn, endsIn, signedInAt };
    return { secrets: { sessionId, kind, principal, cookie, refreshToken, secondFactor, ...times }, token };
  }
}

const storingToken = (row: Sql, from?: Sql): Sql => sql`
      INSERT INTO "_auth_refresh_tokens"
             (hash, session_id, generation, cookie_pad)
      ${rowFrom(row, from)}`;

/** Tests the row `u`, which guests do not have. */
export const NOT_DISABLED = raw('u.disabled IS NOT TRUE');

/** Reads the row `s`. Sessions of the version before have no time of their own. */
const SIGNED_IN_AT = apiTime(raw('coalesce(s.signed_in_at, s.created_at)'));

function readRefresh(cells: Cells) {
  const { secondFactor, signedInAt, ...row } = namedCells(
    cells,
    'id',
    'kind',
    'principal',
    'generation',
    'tokenGeneration',
    'cookiePad',
    'mayRetry',
    'age',
    'secondFactor',
    'signedInAt',
    'isAlive',
  );
  return {
    ...row,
    kind: row.kind as SessionKind,
    generation: Number(row.generation),
    tokenGeneration: Number(row.tokenGeneration),
    mayRetry: row.mayRetry === 't',
    age: Number(row.age),
    secondFactor: secondFactor === 't',
    signedInAt,
    isAlive: row.isAlive === 't',
  };
}
