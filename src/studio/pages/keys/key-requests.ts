/** The requests about API keys. */
import { transport } from '../../data/api-service.ts';

export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly limit: Readonly<Record<string, readonly string[]>> | null;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly created_at: string;
  readonly prefix: string;
  readonly publishable?: boolean;
  readonly addresses?: readonly string[] | null;
  readonly origins?: readonly string[] | null;
}
export interface IssuedKey {
  readonly data: ApiKey;
  readonly secret: string;
}
export interface NewKey {
  readonly name: string;
  readonly roles: readonly string[];
  readonly limit: ApiKey['limit'];
  readonly expires_at: string | null;
  readonly publishable: boolean;
  readonly addresses: readonly string[] | null;
  readonly origins: readonly string[] | null;
}

const KEYS = '/api/auth/keys';
const pathOf = (id: string): string => `${KEYS}/${encodeURIComponent(id)}`;

export const fetchKeys = async (): Promise<readonly ApiKey[]> =>
  (await transport.json<{ readonly data: readonly ApiKey[] }>(KEYS)).data;

export const createKey = (key: NewKey): Promise<IssuedKey> => transport.json(KEYS, { method: 'POST', body: key });

export const rotateKey = (id: string): Promise<IssuedKey> =>
  transport.json(`${pathOf(id)}/rotate`, { method: 'POST', body: {} });

export const revokeKey = (id: string): Promise<unknown> => transport.send(pathOf(id), { method: 'DELETE' });
