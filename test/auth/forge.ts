/** Access tokens made by hand, with node:crypto alone: the suite must not trust the library that it tests. */
import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Database } from '../../src/database/contract.ts';
import { raw } from '../../src/sql.ts';

export type Json = Readonly<Record<string, unknown>>;

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const decode = (part: string): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString());

export interface Parts {
  readonly header: Record<string, unknown>;
  readonly payload: Record<string, unknown>;
  readonly signature: string;
}
export function partsOf(token: string): Parts {
  const [header, payload, signature] = token.split('.') as [string, string, string];
  return { header: decode(header), payload: decode(payload), signature };
}

export const es256 = (header: Json, payload: Json, key: KeyObject): string => {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
};
export const hs256 = (header: Json, payload: Json, secret: string | Buffer): string => {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
};
export const unsigned = (header: Json, payload: Json): string => `${encode(header)}.${encode(payload)}.`;

export const strangersKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

/** The service's own: what is signed with it must fail for another reason than its signature. */
export async function servicesKey(db: Database): Promise<KeyObject> {
  const [row] = await db.rows(raw('SELECT private_jwk FROM "_auth_keys" ORDER BY active_at DESC LIMIT 1'));
  return createPrivateKey({ key: JSON.parse(row![0]!), format: 'jwk' });
}
