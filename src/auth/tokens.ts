/**
 * Access tokens: JWTs (RFC 7519, RFC 9068 `at+jwt`) signed with ES256. The only file with jose.
 * What was verified once is remembered by its exact text until it expires or its session ends.
 */
import {
  type CryptoKey,
  calculateJwkThumbprint,
  createRemoteJWKSet,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  jwtVerify,
  SignJWT,
} from 'jose';
import { Problem } from '../problem.ts';
import type { Database } from '../store/database/contract.ts';
import { BoundedMap } from './cache.ts';
import { insertFirstKey, insertNextKey, type KeyRow, readKeys } from './keys.ts';

const ALG = 'ES256';
const TYP = 'at+jwt';
/** Seconds that clocks of two nodes may differ. */
const CLOCK_TOLERANCE = 5;
const MAX_CACHED = 10_000;
const MAX_LENGTH = 2_048;
const SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
/** A base64url SHA-256 thumbprint (RFC 7638). Anything else is not a `kid` of ours and causes no look-up. */
const KID = /^[A-Za-z0-9_-]{43}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Unknown `kid`s make the keys be read again, but no oftener than this. */
const RELOAD_EVERY_MS = 1_000;
const STALE_AFTER_MS = 30_000;

export interface AccessClaims {
  readonly userId: string;
  readonly sessionId: string;
  /** Seconds of the epoch. */
  readonly expires: number;
}

export interface Tokens {
  sign(claims: AccessClaims): Promise<string>;
  /** Throws `invalid_token` and says no more. Synchronous when the token is known. */
  verify(token: string): AccessClaims | Promise<AccessClaims>;
  /** Forgets what was verified for a session. */
  forget(sessionId: string): void;
  forgetAll(): void;
  jwks(): Promise<{ readonly keys: readonly JWK[] }>;
  /** Reads the keys of the database again. */
  reload(): Promise<void>;
  /** A new signing key; returns its `kid`. */
  rotate(): Promise<string>;
}

export interface TokenSettings {
  readonly db: Database;
  /** Known only once the service listens, where the port was left to chance. */
  readonly issuer: () => string;
  /** Seconds. */
  readonly lifetime: number;
}

interface Key {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly publicJwk: JWK;
  readonly activeAt: number;
}

const invalid = (): Problem =>
  new Problem('invalid_token', 'the access token is not valid or has expired', {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });

export async function createTokens(settings: TokenSettings): Promise<Tokens> {
  const { db, issuer, lifetime } = settings;
  const verified = new VerifiedTokens();
  let keys: readonly Key[] = [];
  let loadedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;

  const load = async (): Promise<void> => {
    const began = Date.now();
    const known = new Map(keys.map((key) => [key.kid, key]));
    keys = await Promise.all((await readKeys(db)).map(async (row) => known.get(row.kid) ?? readKey(row)));
    loadedAt = began;
  };
  const reload = (): Promise<void> => {
    loading ??= load().finally(() => {
      loading = undefined;
    });
    return loading;
  };
  const fresh = async (maxAge: number): Promise<void> => {
    if (Date.now() - loadedAt > maxAge) await reload();
  };
  const find = async (kid: unknown): Promise<CryptoKey> => {
    if (typeof kid !== 'string' || !KID.test(kid)) throw invalid();
    let key = keys.find((each) => each.kid === kid);
    if (key === undefined) {
      await fresh(RELOAD_EVERY_MS);
      key = keys.find((each) => each.kid === kid);
    } else await fresh(STALE_AFTER_MS);
    if (key === undefined || !keys.includes(key)) throw invalid();
    return key.publicKey;
  };

  await load();
  if (keys.length === 0) {
    await insertFirstKey(db, await newKey());
    await load();
  }

  return {
    reload,
    async sign(claims) {
      await fresh(STALE_AFTER_MS);
      const now = Date.now();
      const key = keys.findLast((each) => each.activeAt <= now) ?? keys.at(0);
      if (key === undefined) throw new Error('there is no signing key');
      return new SignJWT({ sid: claims.sessionId })
        .setProtectedHeader({ alg: ALG, typ: TYP, kid: key.kid })
        .setIssuer(issuer())
        .setAudience(issuer())
        .setSubject(claims.userId)
        .setIssuedAt()
        .setExpirationTime(claims.expires)
        .sign(key.privateKey);
    },
    verify(token) {
      const known = verified.get(token);
      if (known !== undefined) {
        if (known.expires + CLOCK_TOLERANCE > Date.now() / 1000) return known;
        throw invalid();
      }
      if (token.length > MAX_LENGTH || !SHAPE.test(token)) throw invalid();
      return verifyNew(token);
    },
    forget: (sessionId) => verified.forget(sessionId),
    forgetAll: () => verified.clear(),
    async jwks() {
      await fresh(RELOAD_EVERY_MS);
      return { keys: keys.map((key) => key.publicJwk) };
    },
    async rotate() {
      const key = await newKey();
      await insertNextKey(db, { ...key, accessSeconds: lifetime });
      await reload();
      return key.kid;
    },
  };

  async function verifyNew(token: string): Promise<AccessClaims> {
    const payload = await checkSignature(token);
    const { sub, sid, exp, iat } = payload;
    if (typeof sub !== 'string' || typeof sid !== 'string' || !UUID.test(sub) || !UUID.test(sid)) throw invalid();
    if (exp! - iat! > lifetime + CLOCK_TOLERANCE || iat! > Date.now() / 1000 + CLOCK_TOLERANCE) throw invalid();
    const claims = { userId: sub, sessionId: sid, expires: exp! };
    verified.add(token, claims);
    return claims;
  }

  async function checkSignature(token: string) {
    try {
      const { payload } = await jwtVerify(token, (header) => find(header.kid), {
        algorithms: [ALG],
        typ: TYP,
        issuer: issuer(),
        audience: issuer(),
        clockTolerance: CLOCK_TOLERANCE,
        requiredClaims: ['sub', 'sid', 'exp', 'iat'],
      });
      return payload;
    } catch (error) {
      if (error instanceof Problem || !isJose(error)) throw error;
      throw invalid();
    }
  }
}

/** jose gives every error of its own a `code` beginning with ERR_J (JOSE, JWT, JWS, JWK). A database that is down is not a bad token. */
const isJose = (error: unknown): boolean =>
  error instanceof Error && /^ERR_J/.test(String((error as { code?: unknown }).code))
    ? true
    : error instanceof TypeError;

async function newKey(): Promise<{ readonly kid: string; readonly privateJwk: string }> {
  const { privateKey } = await generateKeyPair(ALG, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { kid: await calculateJwkThumbprint(jwk), privateJwk: JSON.stringify(jwk) };
}

async function readKey(row: KeyRow): Promise<Key> {
  const jwk = JSON.parse(row.privateJwk) as JWK;
  const { kty, crv, x, y } = jwk;
  const publicJwk = { kty, crv, x, y, kid: row.kid, alg: ALG, use: 'sig' } as JWK;
  return {
    kid: row.kid,
    privateKey: (await importJWK(jwk, ALG)) as CryptoKey,
    publicKey: (await importJWK(publicJwk, ALG)) as CryptoKey,
    publicJwk,
    activeAt: row.activeAt,
  };
}

/** INVARIANT: `#bySession` names exactly the tokens of `#tokens`. */
class VerifiedTokens {
  readonly #tokens = new BoundedMap<string, AccessClaims & { readonly token: string }>(MAX_CACHED);
  readonly #bySession = new Map<string, Set<string>>();

  get(token: string): AccessClaims | undefined {
    return this.#tokens.get(token);
  }
  add(token: string, claims: AccessClaims): void {
    const dropped = this.#tokens.set(token, { ...claims, token });
    if (dropped !== undefined) this.#unlist(dropped.sessionId, dropped.token);
    const siblings = this.#bySession.get(claims.sessionId);
    if (siblings === undefined) this.#bySession.set(claims.sessionId, new Set([token]));
    else siblings.add(token);
  }
  forget(sessionId: string): void {
    for (const token of this.#bySession.get(sessionId) ?? []) this.#tokens.delete(token);
    this.#bySession.delete(sessionId);
  }
  clear(): void {
    this.#tokens.clear();
    this.#bySession.clear();
  }
  #unlist(sessionId: string, token: string): void {
    const siblings = this.#bySession.get(sessionId);
    siblings?.delete(token);
    if (siblings?.size === 0) this.#bySession.delete(sessionId);
  }
}

// ---------------------------------------------------------------- identity tokens of OpenID providers

export interface IdTokenCheck {
  readonly token: string;
  readonly nonce: string;
}
/** The claims. Throws an error whose `reason` is `unavailable` where the provider's keys cannot be had, else `invalid`. */
export type IdTokenVerifier = (
  check: IdTokenCheck,
) => Promise<Readonly<Record<string, unknown>> & { readonly sub: string }>;

export class IdTokenError extends Error {
  readonly reason: 'unavailable' | 'invalid';
  constructor(reason: 'unavailable' | 'invalid', cause: unknown) {
    super(`the identity token is not accepted (${reason})`, { cause });
    this.name = 'IdTokenError';
    this.reason = reason;
  }
}

const ID_TOKEN_ALGS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const ID_TOKEN_CLOCK_TOLERANCE = 30;
const KEYS_TIMEOUT_MS = 5_000;

/** OpenID Connect Core 1.0 §3.1.3.7. */
export function idTokenVerifier(provider: {
  readonly issuer: string;
  readonly clientId: string;
  readonly jwksUri: string;
}): IdTokenVerifier {
  const keys = createRemoteJWKSet(new URL(provider.jwksUri), { timeoutDuration: KEYS_TIMEOUT_MS });
  return async ({ token, nonce }) => {
    const payload = await verified(token, keys, provider);
    const { aud, azp, sub } = payload;
    const others = Array.isArray(aud) && aud.length > 1;
    if (payload.nonce !== nonce) throw new IdTokenError('invalid', 'another nonce');
    if ((others || azp !== undefined) && azp !== provider.clientId)
      throw new IdTokenError('invalid', 'another authorized party');
    if (typeof sub !== 'string' || sub === '') throw new IdTokenError('invalid', 'no subject');
    return { ...payload, sub };
  };
}

async function verified(
  token: string,
  keys: ReturnType<typeof createRemoteJWKSet>,
  { issuer, clientId }: { readonly issuer: string; readonly clientId: string },
) {
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: ID_TOKEN_ALGS,
      issuer,
      audience: clientId,
      clockTolerance: ID_TOKEN_CLOCK_TOLERANCE,
      requiredClaims: ['sub', 'exp', 'iat'],
    });
    return payload;
  } catch (error) {
    const code = String((error as { code?: unknown }).code);
    // What is no JWT, JWS or key error of jose's came from fetching the keys.
    const invalid = /^ERR_(?:JWT|JWS|JWKS_NO|JWKS_MULT|JOSE_(?:ALG|NOT))/.test(code);
    throw new IdTokenError(invalid ? 'invalid' : 'unavailable', error);
  }
}
