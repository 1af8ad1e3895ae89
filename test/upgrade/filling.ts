/** Fills a service of any version over HTTP: records, sessions, keys, files and audit. The result must hold after an upgrade. */
import { Client } from '../support/client.ts';

export const FILLED_SCHEMA = `
roles: { member: {}, admin: {} }
register: { roles: [member] }
collections:
  folders:
    fields: { title: { type: string, required: true, max: 80 } }
    access: { list: true, read: true, create: true, update: true, delete: true }
  tags:
    fields: { name: { type: string, unique: true } }
    access: { list: true, read: true, create: true, update: true, delete: true }
  notes:
    fields:
      title: { type: string, required: true, max: 80, index: true }
      code: { type: string, unique: true }
      n: int
      x: float
      done: { type: bool, default: false }
      due: datetime
    relations:
      owner: { kind: belongs_to, collection: users }
      folder: { kind: belongs_to, collection: folders, on_delete: cascade }
      tags: { kind: many_to_many, collection: tags }
    access:
      list: '@record.owner = @request.auth.id'
      read: '@record.owner = @request.auth.id'
      create: '@record.owner = @request.auth.id'
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
  files:
    access: { list: true, read: true, create: true, delete: true }
`;
export const FILLED_ADMIN = { email: 'admin@example.org', password: 'a password of tests' };
/** Tokens and cookies are good at one address. */
export const FILLED_ENV = {
  BASE_URL: 'http://upgrade.example',
  BYLAW_RATE_LIMIT: 'off',
  BYLAW_ADMIN_EMAIL: FILLED_ADMIN.email,
  BYLAW_ADMIN_PASSWORD: FILLED_ADMIN.password,
};
const ANN = { email: 'ann@example.org', password: 'another password of tests' };

interface KeptRequest {
  readonly path: string;
  readonly key: string;
  readonly body: object;
  readonly answer: string;
}

export interface Filled {
  readonly user: typeof ANN;
  readonly refreshToken: string;
  readonly cookie: string;
  readonly lists: Readonly<Record<string, string>>;
  readonly kept: KeptRequest;
  /** Contents by id. */
  readonly files: Readonly<Record<string, string>>;
}

const LISTS = [
  '/api/folders',
  '/api/tags',
  '/api/notes?expand=folder,tags',
  '/api/files',
  '/api/notes?done=false&limit=2',
];

const wanted = async (answer: ReturnType<Client['get']>, ...statuses: readonly number[]) => {
  const { status, text, body, headers } = await answer;
  if (!statuses.includes(status)) throw new Error(`${status}, expected ${statuses.join()}: ${text}`);
  return { text, body, headers };
};

export async function fill(url: string): Promise<Filled> {
  const anonymous = new Client(url);
  await wanted(anonymous.post('/api/auth/register', ANN), 200, 201, 202);
  const login = await wanted(anonymous.post('/api/auth/login', ANN), 200);
  // Entries of the audit.
  await wanted(anonymous.post('/api/auth/login', { ...ANN, password: 'a wrong password' }), 401);
  await wanted(anonymous.post('/api/auth/login', FILLED_ADMIN), 200);
  const client = anonymous.with({ Authorization: `Bearer ${login.body.access_token}` });
  const make = async (collection: string, data: object): Promise<string> =>
    (await wanted(client.post(`/api/${collection}`, { data }), 201)).body.data.id;
  const owner = login.body.user.id as string;
  const folder = await make('folders', { title: 'a folder' });
  const tags = [await make('tags', { name: 'red' }), await make('tags', { name: 'blue' })];
  for (let n = 0; n < 4; n++) {
    const own = { title: `note ${n}`, code: `c${n}`, n, x: n / 3, due: '2026-01-02T03:04:05Z', owner };
    await make('notes', n % 2 === 0 ? { ...own, folder, tags: { set: tags } } : own);
  }
  const kept = { path: '/api/notes', key: 'kept', body: { data: { title: 'under a key', n: 9, owner } } };
  const { text: answer } = await wanted(client.post(kept.path, kept.body, { 'Idempotency-Key': kept.key }), 201);
  const files: Record<string, string> = {};
  for (const content of ['first file', 'second file']) files[await uploaded(client, content)] = content;
  const lists: Record<string, string> = {};
  for (const path of LISTS) lists[path] = (await wanted(client.get(path), 200)).text;
  const [cookie = ''] = login.headers.getSetCookie()[0]!.split(';');
  return { user: ANN, refreshToken: login.body.refresh_token, cookie, lists, kept: { ...kept, answer }, files };
}

async function uploaded(client: Client, content: string): Promise<string> {
  const form = new FormData();
  form.set('file', new Blob([content], { type: 'text/plain' }), 'a.txt');
  const { Authorization = '' } = client.headers;
  const response = await fetch(`${client.url}/api/files`, { method: 'POST', headers: { Authorization }, body: form });
  if (response.status !== 201) throw new Error(await response.text());
  return ((await response.json()) as { readonly data: { readonly id: string } }).data.id;
}
