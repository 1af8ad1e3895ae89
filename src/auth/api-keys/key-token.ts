/**
 * The text of an API key: `bylaw_<id>_<secret><checksum>`. Its prefix and its checksum let scanners
 * of source code and logs find a leaked key without false alarms. Only its hash is stored.
 */
import { crc32 } from 'node:zlib';
import { hashSecret, newSecret } from '../sessions/secrets.ts';

export const KEY_PREFIX = 'bylaw_';
const KEY_TOKEN =
  /^bylaw_(?<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})_[A-Za-z0-9_-]{43}(?<sum>[0-9A-Za-z]{6})$/;
const CHECKSUM_LENGTH = 6;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export interface KeyToken {
  readonly id: string;
  readonly hash: string;
}

export function newKeyToken(id: string): { readonly token: string; readonly hash: string } {
  const plain = `${KEY_PREFIX}${id}_${newSecret()}`;
  const token = `${plain}${checksumOf(plain)}`;
  return { token, hash: hashSecret(token) };
}

const ID = { start: KEY_PREFIX.length, end: KEY_PREFIX.length + 36 } as const;

/** The place of the id: of a text that may be no key at all. The hash decides. */
export const idPartOf = (text: string): string => text.slice(ID.start, ID.end);

/** Undefined: no key of this service has the text. */
export function readKeyToken(text: string): KeyToken | undefined {
  const { id, sum } = KEY_TOKEN.exec(text)?.groups ?? {};
  if (id === undefined || sum !== checksumOf(text.slice(0, -CHECKSUM_LENGTH))) return undefined;
  return { id, hash: hashSecret(text) };
}

/** CRC32 in base 62, six digits. */
function checksumOf(text: string): string {
  let digits = '';
  for (let rest = crc32(text); digits.length < CHECKSUM_LENGTH; rest = Math.floor(rest / BASE62.length))
    digits = BASE62.charAt(rest % BASE62.length) + digits;
  return digits;
}
