/**
 * Finds the caller of a credential. A session's state is remembered for under a second, and dropped
 * when a node announces a change. While announcements cannot be received it is remembered for a
 * fraction of that: a lost notification never admits a caller for longer than a second.
 */

import { BoundedMap } from '../../bounded-map.ts';
import { type Database, inLane } from '../../database/contract.ts';
import { GUEST_ROW } from '../../policy/check/guests.ts';
import { Problem } from '../../problem.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Users } from '../accounts/users.ts';
import { KeyCallers } from '../api-keys/key-callers.ts';
import { KEY_PREFIX } from '../api-keys/key-token.ts';
import type { Caller } from '../caller.ts';
import { type AccessTokens, invalidToken } from './access-tokens.ts';
import { GatheredReads } from './gathered-reads.ts';
import { hashSecret, isSecret } from './secrets.ts';
import type { SessionState, Sessions } from './sessions.ts';

/** Carries the announcements among nodes: `session:<id>`, `user:<id>`, `keys:`. */
export const AUTH_CHANNEL = 'bylaw_auth';
/** Milliseconds from the start of the query; the rest of the second is for the query itself. */
const TTL = 900;
const TTL_WITHOUT_ANNOUNCEMENTS = 200;
const MAX_SESSIONS = 10_000;

export interface RequestCredentials {
  /** The header as sent. */
  readonly authorization?: string | undefined;
  /** The value of `svc_session`. */
  readonly cookie?: string | undefined;
}

export interface AuthenticatorParts {
  readonly db: Database;
  readonly users: Users;
  readonly schema: Schema;
  readonly tokens: AccessTokens;
  readonly sessions: Sessions;
}

/** The claims of a signed token about its session. */
export interface SessionClaims {
  readonly sessionId: string;
  /** The principal. */
  readonly userId: string;
}

/** The maker of a signed link; `key`: a key, whose id is in place of both. */
export interface LinkSigner extends SessionClaims {
  readonly kind: 'session' | 'key';
  /** The hash of the key's secret, with which the link ends. */
  readonly secret?: string;
}

type SessionKey = { readonly id: string } | { readonly cookie: string };

interface KnownSession {
  readonly at: number;
  /** The principal. */
  readonly userId: string;
  readonly bearer: Caller;
  readonly cookie: Caller;
}

export class Authenticator {
  readonly #parts: AuthenticatorParts;
  readonly #known = new BoundedMap<string, KnownSession>(MAX_SESSIONS);
  /** The session of each cookie, by the cookie's hash: a heap dump holds no credential. */
  readonly #cookies = new BoundedMap<string, string>(MAX_SESSIONS);
  readonly #keys: KeyCallers;
  readonly #rows: GatheredReads<SessionState>;
  #loading = new Map<string, Promise<KnownSession | undefined>>();
  #ttl = TTL_WITHOUT_ANNOUNCEMENTS;
  /** INVARIANT: a state that was read before the last change of any session is used, but not remembered. */
  #changes = 0;
  #unlisten: () => Promise<void> = async () => {};

  private constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
    this.#keys = new KeyCallers({ ...parts, ttl: () => this.#ttl });
    const db = inLane(parts.db, 'urgent');
    this.#rows = new GatheredReads((ids) => parts.sessions.statesOf(db, ids));
  }

  static async open(parts: AuthenticatorParts): Promise<Authenticator> {
    const authenticator = new Authenticator(parts);
    authenticator.#unlisten = await parts.db.listen({
      channel: AUTH_CHANNEL,
      onMessage: (payload) => authenticator.#onMessage(payload),
      onState: (up) => authenticator.#onState(up),
    });
    return authenticator;
  }

  /**
   * A bearer token decides, if there is one. Throws `invalid_token`, `unauthenticated`. Synchronous
   * when everything is remembered.
   */
  authenticate({ authorization, cookie }: RequestCredentials): Caller | Promise<Caller> {
    const bearer = authorization === undefined ? undefined : bearerOf(authorization);
    if (bearer !== undefined) {
      if (bearer.startsWith(KEY_PREFIX)) return this.#keys.authenticate(bearer);
      const claims = this.#parts.tokens.verify(bearer);
      if (claims instanceof Promise) return claims.then((verified) => this.callerOfSession(verified));
      return this.callerOfSession(claims);
    }
    if (cookie !== undefined && cookie !== '') return this.#byCookie(cookie);
    const visitors = this.#parts.sessions.admitsGuests ? '; visitors begin with `POST /api/auth/guest`' : '';
    throw new Problem(
      'unauthenticated',
      `sign in, and send the access token as \`Authorization: Bearer …\` or the session cookie${visitors}`,
    );
  }

  /**
   * Returns the present caller of a session or key, for a link that it signed, or a stream that it opened. Throws
   * `invalid_token` if it ended.
   *
   * @param mostAge milliseconds for which a session counts as read; default: as for requests
   */
  callerOfLink({ kind, secret, ...claims }: LinkSigner, mostAge?: number): Caller | Promise<Caller> {
    if (kind === 'session') return this.callerOfSession(claims, mostAge);
    return this.#keys.callerOf(claims.sessionId, { mostAge, secret });
  }

  /** The opener of a stream, which ends with its session, or with the secret of its key. */
  openerOf({ by, sessionId, principal: userId }: Caller, { authorization = '' }: RequestCredentials): LinkSigner {
    if (by !== 'key') return { kind: 'session', sessionId, userId };
    return { kind: 'key', sessionId, userId, secret: hashSecret(bearerOf(authorization) ?? '') };
  }

  /** Throws `invalid_token` if the session ended. */
  callerOfSession({ sessionId, userId }: SessionClaims, mostAge?: number): Caller | Promise<Caller> {
    const entry = this.#recent(sessionId, mostAge);
    if (entry !== undefined) {
      if (entry.userId !== userId) throw invalidToken();
      return entry.bearer;
    }
    return this.#load(sessionId, { id: sessionId }).then((loaded) => {
      if (loaded === undefined || loaded.userId !== userId) throw invalidToken();
      return loaded.bearer;
    });
  }

  /** Forgets the session, or the key, on every node. */
  sessionEnded(id: string): Promise<void> {
    return this.#announce(`session:${id}`);
  }

  /** Announces a change of a session's second factor, or of its sign-in. */
  sessionChanged(id: string): Promise<void> {
    return this.#announce(`session:${id}`);
  }

  /** Announces a change of a user's roles, fields or `disabled`. */
  async userChanged(id: string): Promise<void> {
    await Promise.all([this.#announce(`user:${id}`), this.#parts.db.noteWrite(id)]);
  }

  close(): Promise<void> {
    return this.#unlisten();
  }

  async #announce(payload: string): Promise<void> {
    this.#onMessage(payload);
    // A node that cannot be reached notices by itself within the second.
    await this.#parts.db.notify(AUTH_CHANNEL, payload).catch(() => undefined);
  }

  #onMessage(payload: string): void {
    const [kind, id = ''] = payload.split(':');
    if (kind === 'session') this.#forgetSession(id);
    else if (kind === 'user') this.#forgetUser(id);
    else if (kind === 'keys') this.#parts.tokens.reload().catch(() => undefined);
  }

  #onState(up: boolean): void {
    this.#ttl = up ? TTL : TTL_WITHOUT_ANNOUNCEMENTS;
    this.#discardReads();
    this.#known.clear();
    this.#keys.clear();
    this.#parts.tokens.forgetAll();
    // Announcements of new keys may have been missed.
    if (up) this.#parts.tokens.reload().catch(() => undefined);
  }

  #forgetSession(id: string): void {
    this.#discardReads();
    this.#known.delete(id);
    this.#keys.forget(id);
    this.#parts.tokens.forget(id);
  }

  #forgetUser(userId: string): void {
    this.#discardReads();
    this.#keys.forgetMaker(userId);
    for (const [id, entry] of this.#known.entries()) if (entry.userId === userId) this.#known.delete(id);
  }

  /** Reads under way may have seen the state before a change. */
  #discardReads(): void {
    this.#changes++;
    this.#loading = new Map();
  }

  #byCookie(cookie: string): Caller | Promise<Caller> {
    if (!isSecret(cookie)) throw sessionOver();
    const hash = hashSecret(cookie);
    const id = this.#cookies.get(hash);
    const entry = id === undefined ? undefined : this.#recent(id);
    if (entry !== undefined) return entry.cookie;
    return this.#load(`cookie:${hash}`, { cookie }).then((loaded) => {
      if (loaded === undefined) {
        this.#cookies.delete(hash);
        throw sessionOver();
      }
      this.#cookies.set(hash, loaded.cookie.sessionId);
      return loaded.cookie;
    });
  }

  #recent(id: string, mostAge = Number.POSITIVE_INFINITY): KnownSession | undefined {
    const entry = this.#known.get(id);
    return entry !== undefined && performance.now() - entry.at < Math.min(this.#ttl, mostAge) ? entry : undefined;
  }

  /** Concurrent requests of one session share a read. */
  #load(key: string, session: SessionKey): Promise<KnownSession | undefined> {
    const loading = this.#loading;
    const underWay = loading.get(key);
    if (underWay !== undefined) return underWay;
    const promise = this.#read(session).finally(() => loading.delete(key));
    loading.set(key, promise);
    return promise;
  }

  async #read(session: SessionKey): Promise<KnownSession | undefined> {
    const at = performance.now();
    const changes = this.#changes;
    const state = await this.#stateOf(session);
    if (state === undefined) return undefined;
    const entry = this.#toKnown(state, at);
    if (changes === this.#changes) this.#known.set(state.sessionId, entry);
    return entry;
  }

  #stateOf(session: SessionKey): Promise<SessionState | undefined> {
    const { db, sessions } = this.#parts;
    return 'id' in session ? this.#rows.of(session.id) : sessions.stateOfCookie(inLane(db, 'urgent'), session.cookie);
  }

  #toKnown({ sessionId, user, ...facts }: SessionState, at: number): KnownSession {
    if (user === undefined) {
      const seen = Object.freeze({ ...GUEST_ROW, guest: sessionId });
      const guest = { kind: 'guest', principal: sessionId, sessionId, auth: seen } as const;
      const [bearer, cookie] = (['bearer', 'cookie'] as const).map((by) => Object.freeze({ ...guest, by }));
      return { at, userId: sessionId, bearer: bearer!, cookie: cookie! };
    }
    const auth = this.#parts.users.caller(user, facts);
    const caller = (by: 'bearer' | 'cookie'): Caller =>
      Object.freeze({ kind: 'user', principal: user.id, sessionId, by, auth });
    return { at, userId: user.id, bearer: caller('bearer'), cookie: caller('cookie') };
  }
}

/** Another scheme is not a bearer token; `Bearer` with nothing after it is a bad one. */
function bearerOf(header: string): string | undefined {
  if (header.startsWith('Bearer ')) return header.slice(7).trim();
  const [scheme = '', ...rest] = header.trim().split(/[ \t]+/);
  return scheme.toLowerCase() === 'bearer' ? rest.join(' ') : undefined;
}

const sessionOver = (): Problem => new Problem('unauthenticated', 'the session is over; sign in again');
