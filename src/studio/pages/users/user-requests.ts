/** The requests of administration. */
import { service, transport } from '../../data/api-service.ts';

export interface Account {
  readonly id: string;
  readonly email: string;
  readonly email_verified?: boolean;
  readonly roles?: readonly string[];
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

const MOST_SHOWN = 50;

export async function findAccounts(text: string): Promise<readonly Account[]> {
  const filter = text === '' ? {} : { filter: `email starts with ${JSON.stringify(text.toLowerCase())}` };
  const { data } = await service.collection('users').query({ limit: MOST_SHOWN, ...filter });
  return data as unknown as readonly Account[];
}

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

const INVITES = '/api/users/invites';

export const fetchInvitations = async (): Promise<readonly Invitation[]> =>
  (await transport.json<{ readonly data: readonly Invitation[] }>(INVITES)).data;

export const removeInvitation = (id: string): Promise<unknown> =>
  transport.send(`${INVITES}/${encodeURIComponent(id)}`, { method: 'DELETE' });

export const invite = (email: string, roles: readonly string[]): Promise<unknown> =>
  transport.send('/api/users/invite', { method: 'POST', body: { email, roles } });

export const addAccount = async (email: string, roles: readonly string[]): Promise<Account> =>
  (await transport.json<{ readonly user: Account }>('/api/auth/users', { method: 'POST', body: { email, roles } }))
    .user;
