/**
 * Access tokens: JWTs (RFC 7519, RFC 9068 `at+jwt`) signed with ES256.
 * A verified token is remembered by its exact text until it expires or its session ends.
 *
 * INVARIANT: nothing identifies a token by its text. An ECDSA signature (r, s) has a twin (r, n −
 * s) that verifies too, so one token has several texts; what ends a token is the end of its
 * session, by `sid`.
 */
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from 'jose';
import { BoundedMap } from '../../bounded-map.ts';
import { invariant } from '../../invariant.ts';
import { parseUuid } from '../../policy/values.ts';
import { Problem } from '../../problem.ts';
import { codeOf } from '../../thrown.ts';
import type { KeyRow, NewKey, SigningKeys } from '../keys/signing-keys.ts';

const ALG = 'ES256';
const TYP = 'at+jwt';
/** Seconds that the clocks of two nodes may differ. */
const CLOCK_TOLERANCE = 5;
const MAX_CACHED = 10_000;
const MAX_TOKEN_LENGTH = 2_048;
const SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
/** A base64url SHA-256 thumbprint (RFC 7638). Anything else is not a `kid` of ours and causes no look-up. */
const KID = /^[A-Za-z0-9_-]{43}$/;
/** An unknown `kid` makes a node read the keys again, but not more often than this. */
const RELOAD_EVERY_MS = 1_000;
/** Nodes announce new keys; a node that misses the announcement uses old keys for this long at most. */
const STALE_AFTER_MS = 10_000;

export interface AccessClaims {
  readonly userId: string;
  readonly sessionId: string;
  /** Seconds since the epoch. */
  readonly expires: number;
}

export interface TokenSettings {
  readonly signingKeys: SigningKeys;
  /** Read at each use: with port 0 it is known only once the service listens. */
  readonly issuer: () => string;
  /** Seconds. */
  readonly lifetime: number;
}

interface SigningKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly publicJwk: JWK;
  readonly activeAt: number;
}

export class AccessTokens {
  readonly #signingKeys: SigningKeys;
  readonly #issuer: () => string;
  readonly #lifetime: number;
  readonly #verified = new VerifiedTokens(MAX_CACHED);
  /** Oldest first. */
  #keys: readonly SigningKey[] = [];
  #loadedAt = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;
  /** INVARIANT: no token is remembered that was verified before keys were last revoked. */
  #revocations = 0;

  private constructor({ signingKeys, issuer, lifetime }: TokenSettings) {
    this.#signingKeys = signingKeys;
    this.#issuer = issuer;
    this.#lifetime = lifetime;
  }

  /** Makes the first key of a new database. Throws KeySecretError. */
  static async open(settings: TokenSettings): Promise<AccessTokens> {
    const tokens = new AccessTokens(settings);
    await tokens.reload();
    if (tokens.#keys.length === 0) {
      await settings.signingKeys.insertFirst(await newKey());
      await tokens.reload();
    }
    await settings.signingKeys.wrapStored();
    return tokens;
  }

  /**
   * Reads the present keys of the database. Throws KeySecretError; readable keys then serve alone.
   */
  async reload(): Promise<void> {
    // A read under way may be older than the change that this call is for.
    await this.#loading?.catch(() => undefined);
    await this.#loadOnce();
  }

  async sign({ userId, sessionId, expires }: AccessClaims): Promise<string> {
    await this.#refresh(STALE_AFTER_MS);
    const now = Date.now();
    const key = this.#keys.findLast(({ activeAt }) => activeAt <= now) ?? this.#keys.at(0);
    invariant(key !== undefined, 'there is a signing key');
    return new SignJWT({ sid: sessionId })
      .setProtectedHeader({ alg: ALG, typ: TYP, kid: key.kid })
      .setIssuer(this.#issuer())
      .setAudience(this.#issuer())
      .setSubject(userId)
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(key.privateKey);
  }

  /** Throws `invalid_token`, without a reason. Synchronous for a remembered token. */
  verify(token: string): AccessClaims | Promise<AccessClaims> {
    // This runs in the background: a node that missed the revocation of a key forgets its tokens.
    if (performance.now() - this.#loadedAt > STALE_AFTER_MS) this.#loadOnce().catch(() => undefined);
    const known = this.#verified.get(token);
    if (known !== undefined) {
      if (known.expires + CLOCK_TOLERANCE > Date.now() / 1000) return known;
      throw invalidToken();
    }
    if (token.length > MAX_TOKEN_LENGTH || !SHAPE.test(token)) throw invalidToken();
    return this.#verifyNew(token);
  }

  /** Forgets the verified tokens of a session. */
  forget(sessionId: string): void {
    this.#verified.forget(sessionId);
  }

  forgetAll(): void {
    this.#verified.clear();
  }

  async jwks(): Promise<{ readonly keys: readonly JWK[] }> {
    await this.#refresh(RELOAD_EVERY_MS);
    return { keys: this.#keys.map(({ publicJwk }) => publicJwk) };
  }

  #loadOnce(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    const began = performance.now();
    const known = new Map(this.#keys.map((key) => [key.kid, key]));
    const rows = await this.#signingKeys.read();
    const outcomes = await Promise.allSettled(
      rows.map(async (row) => known.get(row.kid) ?? readSigningKey(row, this.#signingKeys.unwrap(row))),
    );
    this.#keys = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    this.#loadedAt = began;
    // Tokens of removed keys are invalid, remembered ones too.
    const current = new Set(this.#keys.map(({ kid }) => kid));
    if ([...known.keys()].some((kid) => !current.has(kid))) {
      this.#revocations++;
      this.#verified.clear();
    }
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async #refresh(maxAge: number): Promise<void> {
    if (performance.now() - this.#loadedAt > maxAge) await this.#loadOnce();
  }

  async #publicKey(kid: unknown): Promise<CryptoKey> {
    if (typeof kid !== 'string' || !KID.test(kid)) throw invalidToken();
    await this.#refresh(this.#find(kid) === undefined ? RELOAD_EVERY_MS : STALE_AFTER_MS);
    const key = this.#find(kid);
    if (key === undefined) throw invalidToken();
    return key.publicKey;
  }

  #find(kid: string): SigningKey | undefined {
    return this.#keys.find((key) => key.kid === kid);
  }

  async #verifyNew(token: string): Promise<AccessClaims> {
    const revocations = this.#revocations;
    const { sub, sid, exp, iat } = await this.#payloadOf(token);
    if (!isCanonicalUuid(sub) || !isCanonicalUuid(sid)) throw invalidToken();
    const isTooLong = exp! - iat! > this.#lifetime + CLOCK_TOLERANCE;
    const isFromTheFuture = iat! > Date.now() / 1000 + CLOCK_TOLERANCE;
    if (isTooLong || isFromTheFuture) throw invalidToken();
    const claims = { userId: sub, sessionId: sid, expires: exp! };
    if (revocations === this.#revocations) this.#verified.add(token, claims);
    return claims;
  }

  async #payloadOf(token: string): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, (header) => this.#publicKey(header.kid), {
        algorithms: [ALG],
        typ: TYP,
        issuer: this.#issuer(),
        audience: this.#issuer(),
        clockTolerance: CLOCK_TOLERANCE,
        requiredClaims: ['sub', 'sid', 'exp', 'iat'],
      });
      return payload;
    } catch (error) {
      // A database that cannot be reached does not make a token invalid.
      if (error instanceof Problem || !isTokenError(error)) throw error;
      throw invalidToken();
    }
  }
}

/**
 * Errors of jose have a `code` beginning with ERR_J (JOSE, JWT, JWS, JWK); a header that it cannot
 * read is a TypeError.
 */
const isTokenError = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof Error && /^ERR_J/.test(String(codeOf(error))));

export async function newKey(): Promise<NewKey> {
  const { privateKey } = await generateKeyPair(ALG, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { kid: await calculateJwkThumbprint(jwk), privateJwk: JSON.stringify(jwk) };
}

async function readSigningKey({ kid, activeAt }: KeyRow, privateJwk: string): Promise<SigningKey> {
  const jwk = JSON.parse(privateJwk) as JWK;
  const { kty, crv, x, y } = jwk;
  const publicJwk = { kty, crv, x, y, kid, alg: ALG, use: 'sig' } as JWK;
  return {
    kid,
    privateKey: (await importJWK(jwk, ALG)) as CryptoKey,
    publicKey: (await importJWK(publicJwk, ALG)) as CryptoKey,
    publicJwk,
    activeAt,
  };
}

/** INVARIANT: `#bySession` names exactly the tokens of the map. */
class VerifiedTokens extends BoundedMap<string, VerifiedToken> {
  readonly #bySession = new Map<string, Set<string>>();

  add(token: string, claims: AccessClaims): void {
    const dropped = this.set(token, { ...claims, token });
    if (dropped !== undefined) this.#unlist(dropped);
    const siblings = this.#bySession.get(claims.sessionId);
    if (siblings === undefined) this.#bySession.set(claims.sessionId, new Set([token]));
    else siblings.add(token);
  }

  forget(sessionId: string): void {
    for (const token of this.#bySession.get(sessionId) ?? []) this.delete(token);
    this.#bySession.delete(sessionId);
  }

  override clear(): void {
    super.clear();
    this.#bySession.clear();
  }

  #unlist({ sessionId, token }: VerifiedToken): void {
    const siblings = this.#bySession.get(sessionId);
    siblings?.delete(token);
    if (siblings?.size === 0) this.#bySession.delete(sessionId);
  }
}

interface VerifiedToken extends AccessClaims {
  readonly token: string;
}

/** The one answer to every access token that is not accepted. */
export const invalidToken = (): Problem =>
  new Problem('invalid_token', 'the access token is not valid or has expired', {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });

const isCanonicalUuid = (claim: unknown): claim is string => typeof claim === 'string' && parseUuid(claim) === claim;
