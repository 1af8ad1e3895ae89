/** People of the authentication suites: accounts made over the wire, and what their clients keep. */
import type { Answer, Client } from '../support/client.ts';

export const SCHEMA = `
roles:
  admin: {}
  lead: { includes: [member], assigns: [member, guest] }
  member: { includes: [guest] }
  guest: {}
register: { roles: [member] }
sessions: { access: 15m, refresh: 30d, idle: 14d }
collections:
  teams: { fields: { name: { type: string, required: true } }, access: { list: true, read: true, create: true } }
  notes:
    fields: { text: { type: string, required: true } }
    relations: { owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' } }
    access:
      list: '@record.owner = @request.auth.id'
      read: '@record.owner = @request.auth.id'
      create: [{ roles: [guest] }]
  ranked:
    fields: { name: string }
    access: { list: '@request.auth.level >= 5', create: [{ roles: [lead] }] }
  users:
    fields: { nick: string, level: { type: int, required: true, default: 3 }, seen_at: datetime }
    relations: { team: { kind: belongs_to, collection: teams } }
`;

export const PASSWORD = 'a rather long phrase';
let count = 0;
export const newEmail = (name = 'someone'): string => `${name}.${process.pid}.${++count}@example.org`;

/** The members of a login's answer, in this order. */
export const TOKEN_KEYS = [
  'access_token',
  'token_type',
  'expires_in',
  'refresh_token',
  'refresh_expires_in',
  'user',
] as const;

export interface Tokens {
  readonly access: string;
  readonly refresh: string;
  /** `svc_session=…` */
  readonly cookie: string;
  readonly client: Client;
  readonly cookieClient: Client;
}

export async function register(
  client: Client,
  email = newEmail(),
  password = PASSWORD,
): Promise<{ readonly id: string; readonly email: string }> {
  const answer = await client.post('/api/auth/register', { email, password });
  if (answer.status !== 201) throw new Error(answer.text);
  return { id: answer.body.user.id, email };
}

export async function login(client: Client, email: string, password = PASSWORD): Promise<Tokens> {
  return tokensOf(client, await client.post('/api/auth/login', { email, password }));
}

export function tokensOf(client: Client, answer: Answer): Tokens {
  if (answer.status !== 200) throw new Error(answer.text);
  const cookie = cookieOf(answer, 'svc_session')!;
  const access = answer.body.access_token as string;
  return {
    access,
    refresh: answer.body.refresh_token,
    cookie,
    client: client.with({ Authorization: `Bearer ${access}` }),
    cookieClient: client.with({ Cookie: cookie }),
  };
}

export async function newPerson(client: Client): Promise<Tokens & { readonly id: string; readonly email: string }> {
  const person = await register(client);
  return { ...person, ...(await login(client, person.email)) };
}

export const refresh = (client: Client, token: string): Promise<Answer> =>
  client.post('/api/auth/token/refresh', { refresh_token: token });

export const cookieOf = (answer: Answer, name: string): string | undefined =>
  answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0]!)
    .find((pair) => pair.startsWith(`${name}=`));

export const codeOf = ({ status, body }: Answer): string => `${status} ${body?.code}`;
