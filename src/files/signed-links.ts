/**
 * Signs links that act for the session that made them, for a few minutes and for the content of one file.
 * A link grants nothing by itself: a request with it is decided as a request of that session would
 * be now, so a logout, a lost role or a changed record ends it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Problem } from '../problem.ts';

/** Seconds. */
const LIFETIME = 300;

interface LinkClaims {
  readonly fileId: string;
  /** A key's id is its session's, and its user's. */
  readonly kind: 'session' | 'key';
  readonly sessionId: string;
  readonly userId: string;
}

/** Links of the version before name no kind: sessions made them. */
type LinkPayload = [file: string, session: string, user: string, expires: number, kind?: LinkClaims['kind']];

export interface SignedLinks {
  make(claims: LinkClaims): { readonly token: string; readonly expiresAt: Date };
  /** Throws `invalid_token` if the link is forged, expired, or for another file. */
  read(token: string, fileId: string): LinkClaims;
}

export function createLinks(key: Buffer, now: () => number = () => Date.now()): SignedLinks {
  const sign = (payload: string): Buffer => createHmac('sha256', key).update(payload).digest();
  return {
    make({ fileId, sessionId, userId, kind }) {
      const expires = Math.floor(now() / 1000) + LIFETIME;
      const payload = Buffer.from(JSON.stringify([fileId, sessionId, userId, expires, kind])).toString('base64url');
      return { token: `${payload}.${sign(payload).toString('base64url')}`, expiresAt: new Date(expires * 1000) };
    },
    read(token, fileId) {
      const [payload = '', signature = '', ...rest] = token.split('.');
      const expected = sign(payload);
      const given = Buffer.from(signature, 'base64url');
      if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) throw badLink();
      const text = Buffer.from(payload, 'base64url').toString();
      const [ofFile, sessionId, userId, expires, kind = 'session'] = JSON.parse(text) as LinkPayload;
      if (ofFile !== fileId || expires * 1000 <= now()) throw badLink();
      return { fileId: ofFile, sessionId, userId, kind };
    },
  };
}

const badLink = (): Problem => new Problem('invalid_token', 'this link is not valid or has expired; ask for a new one');
