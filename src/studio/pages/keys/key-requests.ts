/** The requests about API keys. */
import { transport } from '../../data/api-service.ts';

export interface ListedKey {
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
export interface KeyWithSecret {
  readonly data: ListedKey;
  readonly secret: string;
}
export interface KeyDraft {
  readonly name: string;
  readonly roles: readonly string[];
  readonly limit: ListedKey['limit'];
  readonly expires_at: string | null;
  readonly publishable: boolean;
  readonly addresses: readonly string[] | null;
  readonly origins: readonly string[] | null;
}

const KEYS_PATH = '/api/auth/keys';
const keyPath = (id: string): string => `${KEYS_PATH}/${encodeURIComponent(id)}`;

export const fetchKeys = async (): Promise<readonly ListedKey[]> =>
  (await transport.json<{ readonly data: readonly ListedKey[] }>(KEYS_PATH)).data;

export const createApiKey = (key: KeyDraft): Promise<KeyWithSecret> =>
  transport.json(KEYS_PATH, { method: 'POST', body: key });

export const rotateApiKey = (id: string): Promise<KeyWithSecret> =>
  transport.json(`${keyPath(id)}/rotate`, { method: 'POST', body: {} });

export const revokeApiKey = (id: string): Promise<unknown> => transport.send(keyPath(id), { method: 'DELETE' });
