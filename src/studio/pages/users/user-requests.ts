/** The requests of administration. */
import { transport } from '../../data/api-service.ts';

export interface ShownAccount {
  readonly id: string;
  readonly email: string;
  readonly disabled: boolean;
  readonly email_verified: boolean;
  readonly second_factor: boolean;
  readonly roles: readonly string[];
}
export interface AccountSession {
  readonly id: string;
  readonly created_at: string;
  readonly last_used_at: string;
  readonly user_agent: string | null;
  readonly ip: string | null;
}

export interface Invitation {
  readonly id: string;
  readonly email: string;
  readonly roles: readonly string[];
  readonly expires_at: string;
}

const ACCOUNT_LIST = '/api/auth/users';
const ACCOUNTS_OF_A_PAGE = 50;

export interface FoundAccounts {
  readonly accounts: readonly ShownAccount[];
  readonly hasMore: boolean;
}

/** `email`: the beginning of the address. */
export async function findAccounts(email: string, pages: number): Promise<FoundAccounts> {
  const accounts: ShownAccount[] = [];
  for (let page = 0; page < pages; page++) {
    const query = { email: email || undefined, after: accounts.at(-1)?.email, limit: ACCOUNTS_OF_A_PAGE };
    const found = await fetchAccounts(query);
    accounts.push(...found);
    if (found.length < ACCOUNTS_OF_A_PAGE) return { accounts, hasMore: false };
  }
  return { accounts, hasMore: true };
}

/** Undefined: no user has the id. */
export const accountOf = async (user: string): Promise<ShownAccount | undefined> => (await fetchAccounts({ user }))[0];

const fetchAccounts = async (
  query: Readonly<Record<string, string | number | undefined>>,
): Promise<readonly ShownAccount[]> =>
  (await transport.json<{ readonly data: readonly ShownAccount[] }>(ACCOUNT_LIST, { query })).data;

const pathOf = (id: string, rest: string): string => `/api/users/${encodeURIComponent(id)}/${rest}`;

export const sessionsOf = async (id: string): Promise<readonly AccountSession[]> =>
  (await transport.json<{ readonly data: readonly AccountSession[] }>(pathOf(id, 'sessions'))).data;

export const actOn = (
  id: string,
  action: 'disable' | 'enable' | 'password-reset' | 'second-factor/reset',
): Promise<unknown> => transport.send(pathOf(id, action), { method: 'POST' });

export const endSessionsOf = (id: string): Promise<unknown> =>
  transport.send(pathOf(id, 'sessions'), { method: 'DELETE' });

export const setRoles = (id: string, roles: readonly string[]): Promise<unknown> =>
  transport.json(`/api/users/${encodeURIComponent(id)}`, {
    method: 'PATCH',
    body: { data: { roles: { set: roles } } },
  });

const INVITES_PATH = '/api/users/invites';

export const fetchInvitations = async (): Promise<readonly Invitation[]> =>
  (await transport.json<{ readonly data: readonly Invitation[] }>(INVITES_PATH)).data;

export const removeInvitation = (id: string): Promise<unknown> =>
  transport.send(`${INVITES_PATH}/${encodeURIComponent(id)}`, { method: 'DELETE' });

export const invite = (email: string, roles: readonly string[]): Promise<unknown> =>
  transport.send('/api/users/invite', { method: 'POST', body: { email, roles } });

/** → the id. */
export const addAccount = async (email: string, roles: readonly string[]): Promise<string> =>
  (
    await transport.json<{ readonly user: Pick<ShownAccount, 'id'> }>(ACCOUNT_LIST, {
      method: 'POST',
      body: { email, roles },
    })
  ).user.id;
