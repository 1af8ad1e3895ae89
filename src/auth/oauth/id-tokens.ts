/** Verifies identity tokens of OpenID providers (OpenID Connect Core 1.0 §3.1.3.7). */
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import { parseUuid } from '../../policy/values.ts';
import { codeOf } from '../../thrown.ts';
import { TENANT } from '../providers/presets.ts';

export interface IdTokenIssuer {
  /** With the place of a tenant, if it speaks for several. */
  readonly issuer: string;
  readonly clientId: string;
  readonly jwksUri: string;
}

export type IdTokenClaims = JWTPayload & { readonly sub: string; readonly iss: string };

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
    const { payload, kid } = await this.#verified(token);
    const { aud, azp, sub, iss } = payload;
    const hasOtherAudiences = Array.isArray(aud) && aud.length > 1;
    if (payload.nonce !== nonce) throw new IdTokenError('invalid', 'another nonce');
    if ((hasOtherAudiences || azp !== undefined) && azp !== this.#provider.clientId)
      throw new IdTokenError('invalid', 'another authorized party');
    if (typeof sub !== 'string' || sub === '') throw new IdTokenError('invalid', 'no subject');
    if (typeof iss !== 'string' || iss !== this.#issuerOf(payload) || !this.#isKeyOf(iss, kid))
      throw new IdTokenError('invalid', 'another issuer');
    return { ...payload, sub, iss };
  }

  /** Returns false if an answer that names this issuer is not its own. */
  mayBe(issuer: string | undefined): boolean {
    return this.#provider.issuer.includes(TENANT) || issuer === this.#provider.issuer;
  }

  #issuerOf({ tid }: JWTPayload): string | undefined {
    const { issuer } = this.#provider;
    if (!issuer.includes(TENANT)) return issuer;
    return typeof tid === 'string' && parseUuid(tid) === tid ? issuer.replace(TENANT, tid) : undefined;
  }

  /** A key of Microsoft may belong to one tenant: no other's token is signed with it. A token names its key. */
  #isKeyOf(iss: string, kid: string | undefined): boolean {
    if (!this.#provider.issuer.includes(TENANT)) return true;
    const key = this.#keys.jwks()?.keys.find((key) => key.kid === kid) as { readonly issuer?: string } | undefined;
    return kid !== undefined && key !== undefined && [undefined, iss, this.#provider.issuer].includes(key.issuer);
  }

  async #verified(token: string): Promise<{ readonly payload: JWTPayload; readonly kid: string | undefined }> {
    const { issuer, clientId } = this.#provider;
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.#keys, {
        algorithms: ALGORITHMS,
        ...(issuer.includes(TENANT) ? {} : { issuer }),
        audience: clientId,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['sub', 'exp', 'iat'],
      });
      return { payload, kid: protectedHeader.kid };
    } catch (error) {
      const code = String(codeOf(error));
      // Any other error came from fetching the keys.
      const isInvalid = /^ERR_(?:JWT|JWS|JWKS_NO|JWKS_MULT|JOSE_(?:ALG|NOT))/.test(code);
      throw new IdTokenError(isInvalid ? 'invalid' : 'unavailable', error);
    }
  }
}
