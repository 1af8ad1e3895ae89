/**
 * Rotates signing keys. It needs the database alone and not the present keys, so that keys that
 * leaked, or that can no longer be unwrapped, can be replaced.
 */
import type { Database } from '../../database/contract.ts';
import { recordAudit } from '../audit-trail.ts';
import { newKey } from '../sessions/access-tokens.ts';
import { AUTH_CHANNEL } from '../sessions/authenticator.ts';
import { SigningKeys } from './signing-keys.ts';

export interface KeyRotation {
  /** Wraps the new key. */
  readonly keySecret: Buffer | undefined;
  /** The lifetime of access tokens in seconds; older keys verify for that long. */
  readonly tokenLifetime: number;
  /** True: older keys verify no longer; every access token becomes invalid, and clients refresh. */
  readonly now: boolean;
}

export async function rotateKeys(db: Database, { keySecret, tokenLifetime, now }: KeyRotation): Promise<string> {
  const keys = new SigningKeys(db, keySecret);
  const key = await newKey();
  if (now) await keys.replaceAll(key);
  else await keys.insertNext(key, tokenLifetime);
  await recordAudit(db, { event: now ? 'keys_revoked' : 'key_rotated', detail: { kid: key.kid } });
  await db.notify(AUTH_CHANNEL, 'keys:');
  return key.kid;
}
