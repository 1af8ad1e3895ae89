/** The service under attack, with people and a few records in it. The long form runs it in a separate process. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { App } from '../../../src/http/app.ts';
import { routes } from '../../../src/routes/index.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import type { CallerName, CollectionShape, World } from './requests.ts';

const PASSWORD = 'a password of tests';
const PEOPLE: Readonly<Record<Exclude<CallerName, 'guest'>, readonly string[]>> = {
  user: ['member'],
  other: ['member'],
  cookie: ['member'],
  admin: ['admin', 'editor'],
};

const emailOf = (name: string): string => `${name}@fuzz.example.org`;

export async function makePeople({ auth }: App): Promise<void> {
  for (const [name, roles] of Object.entries(PEOPLE)) {
    await auth.admin.addUser({ email: emailOf(name), password: PASSWORD, roles: [...roles] });
  }
}

export function shapesOf({ collections }: Schema): readonly CollectionShape[] {
  return [...collections.values()].map(({ name, fields, relations }) => ({
    name,
    fields: [...fields.keys()],
    relations: [...relations.keys()],
  }));
}

/** New sessions, and records of every collection that a member may create. */
export async function makeWorld(url: string, collections: readonly CollectionShape[]): Promise<World> {
  const credentials: Record<string, Record<string, string>> = { guest: {} };
  await signIn(url, credentials);
  const ids = new Map<string, string[]>(collections.map(({ name }) => [name, []]));
  const make = async (name: string, data: object): Promise<void> => {
    const response = await fetch(`${url}/api/${name}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...credentials.user },
      body: JSON.stringify({ data }),
    });
    const { data: made } = (await response.json()) as { data?: { id: string } };
    if (made !== undefined) ids.get(name)!.push(made.id);
  };
  for (let i = 0; i < 5; i++) {
    await make('posts', { title: `post ${i}`, status: i % 2 === 0 ? 'published' : 'draft' });
    await make('tags', { name: `tag ${i}`, hidden: i === 4 });
    await make('counters', { name: `counter ${i}` });
    await make('comments', { text: 'a comment', post: ids.get('posts')![0] });
  }
  const form = new FormData();
  form.set('file', new Blob(['hello'], { type: 'text/plain' }), 'hello.txt');
  const uploaded = await fetch(`${url}/api/files`, { method: 'POST', headers: credentials.user!, body: form });
  const { data: file } = (await uploaded.json()) as { data: { id: string } };
  ids.get('files')?.push(file.id);
  return { routes, collections, ids, credentials: credentials as unknown as World['credentials'] };
}

/** Renews the credentials in place: hostile requests log people out. */
export async function signIn(url: string, credentials: Record<string, Record<string, string>>): Promise<void> {
  for (const name of Object.keys(PEOPLE)) {
    const response = await fetch(`${url}/api/auth/login`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ email: emailOf(name), password: PASSWORD }),
    });
    if (!response.ok) throw new Error(`${name} cannot sign in: ${response.status} ${await response.text()}`);
    const { access_token: token } = (await response.json()) as { access_token: string };
    const cookie = response.headers.getSetCookie()[0]!.split(';')[0]!;
    credentials[name] = name === 'cookie' ? { Cookie: cookie } : { Authorization: `Bearer ${token}` };
  }
}

export async function temporaryFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'bylaw-fuzz-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
