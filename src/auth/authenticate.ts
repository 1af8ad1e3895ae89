/**
 * From a credential to a caller. A session's state is remembered for under a second, and is dropped when a node tells that it changed.
 * While nodes cannot be heard, it is remembered for a fraction of that: a lost notification never lets anybody in for longer than a second.
 */
import { Problem } from '../problem.ts';
import type { Database } from '../store/database/contract.ts';
import { BoundedMap } from './cache.ts';
import type { Caller } from './contract.ts';
import { hashSecret, isSecret } from './secrets.ts';
import type { SessionState, Sessions } from './sessions.ts';
import type { Tokens } from './tokens.ts';
import type { Users } from './users.ts';

export const CHANNEL = 'bylaw_auth';
/** Milliseconds from the start of the query; the rest of the second is for the query itself. */
const TTL = 900;
const TTL_DEAF = 200;
const MAX_SESSIONS = 10_000;

/** `authorization`: the header as it came; `cookie`: the value of `svc_session`. */
export interface Credentials {
  readonly authorization?: string | undefined;
  readonly cookie?: string | undefined;
}

export interface Authenticator {
  /** The bearer token decides where there is one. Throws `invalid_token`, `unauthenticated`. Synchronous when all is remembered. */
  authenticate(credentials: Credentials): Caller | Promise<Caller>;
  /** For a signed link: the caller that the session would be now. Throws `invalid_token` where it is over. */
  callerOfSession(session: { readonly sessionId: string; readonly userId: string }): Caller | Promise<Caller>;
  /** Here and on every node. */
  sessionEnded(id: string): Promise<void>;
  /** Roles, fields, or whether the user may come in at all. */
  userChanged(id: string): Promise<void>;
  keysChanged(): Promise<void>;
  close(): Promise<void>;
}

interface Known {
  readonly at: number;
  readonly userId: string;
  readonly bearer: Caller;
  readonly cookie: Caller;
}

export async function createAuthenticator(parts: {
  readonly db: Database;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly users: Users;
}): Promise<Authenticator> {
  const { db, tokens, sessions, users } = parts;
  const known = new BoundedMap<string, Known>(MAX_SESSIONS);
  /** Hash of a cookie → session. Not the cookie itself: a heap dump should not log anybody in. */
  const cookies = new BoundedMap<string, string>(MAX_SESSIONS);
  let loading = new Map<string, Promise<Known | undefined>>();
  let ttl = TTL_DEAF;
  /** INVARIANT: what was read before the last change of anything is answered, not remembered. */
  let changes = 0;

  const forgetSession = (id: string): void => {
    changes++;
    loading = new Map();
    known.delete(id);
    tokens.forget(id);
  };
  const forgetUser = (userId: string): void => {
    changes++;
    loading = new Map();
    for (const [id, entry] of known.entries()) if (entry.userId === userId) known.delete(id);
  };
  const forgetAll = (): void => {
    changes++;
    loading = new Map();
    known.clear();
    tokens.forgetAll();
  };

  const hear = (payload: string): void => {
    const [kind, id = ''] = payload.split(':');
    if (kind === 'session') forgetSession(id);
    else if (kind === 'user') forgetUser(id);
    else if (kind === 'keys') tokens.reload().catch(() => undefined);
  };
  const unlisten = await db.listen(CHANNEL, hear, (up) => {
    ttl = up ? TTL : TTL_DEAF;
    forgetAll();
  });

  const load = (key: string, by: { readonly id: string } | { readonly cookie: string }): Promise<Known | undefined> => {
    const under = loading.get(key);
    if (under !== undefined) return under;
    const at = Date.now();
    const began = changes;
    const list = loading;
    const promise = sessions
      .stateOf(db, by)
      .then((state) => {
        if (state === undefined) return undefined;
        const entry = toKnown(state, at);
        if (began === changes) remember(state.sessionId, entry);
        return entry;
      })
      .finally(() => list.delete(key));
    list.set(key, promise);
    return promise;
  };
  const remember = (id: string, entry: Known): void => {
    known.set(id, entry);
  };
  const toKnown = ({ sessionId, user }: SessionState, at: number): Known => {
    const auth = Object.freeze({ ...user, roles: Object.freeze(users.effectiveRoles(user.roles)) });
    const caller = (by: 'bearer' | 'cookie'): Caller => Object.freeze({ id: user.id, sessionId, by, auth });
    return { at, userId: user.id, bearer: caller('bearer'), cookie: caller('cookie') };
  };
  const recent = (id: string): Known | undefined => {
    const entry = known.get(id);
    return entry !== undefined && Date.now() - entry.at < ttl ? entry : undefined;
  };

  const byBearer = (token: string): Caller | Promise<Caller> => {
    const claims = tokens.verify(token);
    if (claims instanceof Promise) return claims.then((verified) => bySession(verified));
    return bySession(claims);
  };
  const bySession = (claims: { readonly sessionId: string; readonly userId: string }): Caller | Promise<Caller> => {
    const entry = recent(claims.sessionId);
    if (entry !== undefined) {
      if (entry.userId !== claims.userId) throw badToken();
      return entry.bearer;
    }
    return load(claims.sessionId, { id: claims.sessionId }).then((loaded) => {
      if (loaded === undefined || loaded.userId !== claims.userId) throw badToken();
      return loaded.bearer;
    });
  };
  const byCookie = (cookie: string): Caller | Promise<Caller> => {
    if (!isSecret(cookie)) throw badCookie();
    const hash = hashSecret(cookie);
    const id = cookies.get(hash);
    const entry = id === undefined ? undefined : recent(id);
    if (entry !== undefined) return entry.cookie;
    return load(`cookie:${hash}`, { cookie }).then((loaded) => {
      if (loaded === undefined) {
        cookies.delete(hash);
        throw badCookie();
      }
      cookies.set(hash, loaded.cookie.sessionId);
      return loaded.cookie;
    });
  };

  const tell = async (payload: string): Promise<void> => {
    hear(payload);
    // Who cannot be told finds out by itself within the second.
    await db.notify(CHANNEL, payload).catch(() => undefined);
  };

  return {
    authenticate({ authorization, cookie }) {
      const bearer = authorization === undefined ? undefined : bearerOf(authorization);
      if (bearer !== undefined) return byBearer(bearer);
      if (cookie !== undefined && cookie !== '') return byCookie(cookie);
      throw new Problem(
        'unauthenticated',
        'sign in, and send the access token as `Authorization: Bearer …` or the session cookie',
      );
    },
    callerOfSession: bySession,
    sessionEnded: (id) => tell(`session:${id}`),
    userChanged: (id) => tell(`user:${id}`),
    keysChanged: () => tell('keys:'),
    close: () => unlisten(),
  };
}

/** Another scheme is no bearer token; `Bearer` with nothing after it is a bad one. */
function bearerOf(header: string): string | undefined {
  if (header.startsWith('Bearer ')) return header.slice(7).trim();
  const [scheme = '', ...rest] = header.trim().split(/[ \t]+/);
  return scheme.toLowerCase() === 'bearer' ? rest.join(' ') : undefined;
}

const badToken = (): Problem =>
  new Problem('invalid_token', 'the access token is not valid or has expired', {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
const badCookie = (): Problem => new Problem('unauthenticated', 'the session is over; sign in again');
