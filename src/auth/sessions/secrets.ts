/**
 * Opaque tokens: 256 random bits, stored only as a hash. A slow hash would add nothing: 256 bits
 * cannot be guessed.
 */
import { createHmac, hash, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;
/** The form of every opaque token. */
export const SECRET = /^[A-Za-z0-9_-]{43}$/;

export const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url');

export const hashSecret = (secret: string): string => hash('sha256', secret, 'base64url');

export const isSecret = (text: string): boolean => SECRET.test(text);

/**
 * Encrypts `secret` with `key`: the key decrypts it, and the database alone reveals nothing.
 * INVARIANT: a key hides one secret only, as it is a one-time pad. The same call reveals the secret again.
 */
export function pad(key: string, secret: string): string {
  const mask = createHmac('sha256', key).update('bylaw cookie pad').digest();
  const bytes = Buffer.from(secret, 'base64url');
  return Buffer.from(bytes.map((byte, i) => byte ^ mask.readUInt8(i))).toString('base64url');
}
