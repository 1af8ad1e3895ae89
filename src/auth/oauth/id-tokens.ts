/** Verifies identity tokens of OpenID providers (OpenID Connect Core 1.0 §3.1.3.7). */
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import { codeOf } from '../../thrown.ts';

export interface IdTokenIssuer {
  readonly issuer: string;
  readonly clientId: string;
  readonly jwksUri: string;
}

export type IdTokenClaims = JWTPayload & { readonly sub: string };

export class IdTokenError extends Error {
  /** `unavailable`: the provider's keys could not be fetched. */
  readonly reason: 'unavailable' | 'invalid';
  constructor(reason: 'unavailable' | 'invalid', cause: unknown) {
    super(`the identity token is not accepted (${reason})`, { cause });
    this.name = 'IdTokenError';
    this.reason = reason;
  }
}

/**
 * Public-key signatures only: `none` proves nothing, and an HMAC is made with a secret that the
 * provider shares.
 */
const ALGORITHMS = [
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
const CLOCK_TOLERANCE_SECONDS = 30;
const KEYS_TIMEOUT_MS = 5_000;

export class IdTokenVerifier {
  readonly #provider: IdTokenIssuer;
  readonly #keys: ReturnType<typeof createRemoteJWKSet>;

  constructor(provider: IdTokenIssuer) {
    this.#provider = provider;
    this.#keys = createRemoteJWKSet(new URL(provider.jwksUri), { timeoutDuration: KEYS_TIMEOUT_MS });
  }

  /** Throws IdTokenError. */
  async verify(token: string, nonce: string): Promise<IdTokenClaims> {
    const payload = await this.#payloadOf(token);
    const { aud, azp, sub } = payload;
    const hasOtherAudiences = Array.isArray(aud) && aud.length > 1;
    if (payload.nonce !== nonce) throw new IdTokenError('invalid', 'another nonce');
    if ((hasOtherAudiences || azp !== undefined) && azp !== this.#provider.clientId)
      throw new IdTokenError('invalid', 'another authorized party');
    if (typeof sub !== 'string' || sub === '') throw new IdTokenError('invalid', 'no subject');
    return { ...payload, sub };
  }

  async #payloadOf(token: string): Promise<JWTPayload> {
    const { issuer, clientId } = this.#provider;
    try {
      const { payload } = await jwtVerify(token, this.#keys, {
        algorithms: ALGORITHMS,
        issuer,
        audience: clientId,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['sub', 'exp', 'iat'],
      });
      return payload;
    } catch (error) {
      const code = String(codeOf(error));
      // Any other error came from fetching the keys.
      const isInvalid = /^ERR_(?:JWT|JWS|JWKS_NO|JWKS_MULT|JOSE_(?:ALG|NOT))/.test(code);
      throw new IdTokenError(isInvalid ? 'invalid' : 'unavailable', error);
    }
  }
}
