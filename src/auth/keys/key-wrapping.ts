/**
 * Wraps private signing keys at rest, with a secret of the operator, by AES-256-GCM, so that
 * a dump of the database alone signs nothing. Wrapped form: `A256GCM.<nonce>.<ciphertext and tag>`,
 * in base64url; the `kid` is authenticated, so that a wrapped key cannot be moved to another row.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const PREFIX = 'A256GCM.';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

class KeySecretError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'KeySecretError';
  }
}

const REPLACE = 'or replace every key: `bylaw keys rotate --now`';

export const isWrapped = (stored: string): boolean => stored.startsWith(PREFIX);

/** `secret`: 32 bytes. */
export function wrapKey(kid: string, privateJwk: string, secret: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(kid));
  const sealed = Buffer.concat([cipher.update(privateJwk, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${PREFIX}${nonce.toString('base64url')}.${sealed.toString('base64url')}`;
}

export interface StoredKey {
  readonly kid: string;
  readonly stored: string;
  /** In messages. Default: the signing key with this `kid`. */
  readonly label?: string;
  /** For a secret that is lost. Default: that of signing keys. */
  readonly remedy?: string;
}

/** Returns a key that is not wrapped unchanged. Throws KeySecretError. */
export function unwrapKey(key: StoredKey, secret: Buffer | undefined): string {
  const { kid, stored, label = `the signing key ${kid}`, remedy = REPLACE } = key;
  if (!isWrapped(stored)) return stored;
  if (secret === undefined) {
    const advice = `set BYLAW_KEY_SECRET to the secret that wrapped it, ${remedy}`;
    throw new KeySecretError(`${label} is wrapped, and BYLAW_KEY_SECRET is not set; ${advice}`);
  }
  const [nonce = '', sealed = ''] = stored.slice(PREFIX.length).split('.');
  const bytes = Buffer.from(sealed, 'base64url');
  try {
    const decipher = createDecipheriv('aes-256-gcm', secret, Buffer.from(nonce, 'base64url'), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(kid));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    const advice = `start with the secret that wrapped it, ${remedy}`;
    throw new KeySecretError(`BYLAW_KEY_SECRET does not unwrap ${label}; ${advice}`);
  }
}
