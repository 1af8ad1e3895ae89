// @module-tag long
/** The tools that `bylaw dev` gives to pages: a save of the schema file, and runs of policy tests. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { dev, type Server } from '../support/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-workshop-'));
const FILE = join(folder, 'bylaw.yaml');
const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };
const schema = (list = 'true', fields = 'title: string'): string => `
roles: [admin, member]
collections:
  posts:
    fields: { ${fields} }
    access: { list: ${list}, read: true, create: true }
`;
const TESTS = `
rows: { posts: { one: { title: one }, two: { title: two } } }
tests:
  - { list: posts, as: guest, expect: [two] }
`;

let server: Server;
let client: Client;
beforeAll(async () => {
  writeFileSync(FILE, schema());
  await fillDataFolder(join(folder, 'data'));
  const where = ['--schema', FILE, '--data', join(folder, 'data')];
  server = await dev(where, { BYLAW_ADMIN_EMAIL: ADMIN.email, BYLAW_ADMIN_PASSWORD: ADMIN.password });
  const { body } = await new Client(server.url).post('/api/auth/login', ADMIN);
  client = new Client(server.url, { Authorization: `Bearer ${body.access_token}` });
});
afterAll(async () => {
  await server?.end('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const served = async () => (await client.get('/api/_schema')).body.data;
const put = (text: string, version: string) =>
  client.send('PUT', '/api/_schema', { json: { text, if_match: version } });
const TWO = schema('\'@record.title = "two"\'');

test('a save writes and serves a file that has not changed meanwhile', async () => {
  for (const title of ['one', 'two']) await client.post('/api/posts', { data: { title } });
  const { text, version, can_save: canSave } = await served();
  expect([text, canSave]).toEqual([schema(), true]);
  const other = await put(TWO, 'another');
  expect([other.status, other.body.code]).toEqual([412, 'changed']);
  const wrong = await put(schema("'@record.titel = 1'"), version);
  expect([wrong.status, wrong.body.errors[0].pointer]).toEqual([422, '/text']);
  expect(readFileSync(FILE, 'utf8')).toBe(schema());
  const saved = await put(TWO, version);
  expect([saved.status, readFileSync(FILE, 'utf8')]).toEqual([200, TWO]);
  expect(await served()).toMatchObject({ text: TWO, version: saved.body.data.version });
  expect((await client.get('/api/posts')).body.data.length).toBe(1);
});

test('a change that loses data is not served, and the answer says why', async () => {
  const refused = await put(schema('true', 'other: string'), (await served()).version);
  expect([refused.status, refused.body.errors[0].code]).toEqual([422, 'not_served']);
  expect(refused.body.errors[0].detail).toMatch(/"posts"."title"[\s\S]*would be lost/);
  expect((await served()).text).toBe(TWO);
});

test('policy tests run by the served schema, with their coverage, and errors are at their file', async () => {
  expect((await client.get('/api/_test')).body.data.files).toEqual({});
  writeFileSync(join(folder, 'notes.policy.yaml'), TESTS);
  const found = await client.get('/api/_test');
  expect([found.headers.get('cache-control'), found.body.data.files]).toEqual([
    'no-store',
    { 'notes.policy.yaml': TESTS },
  ]);
  const ran = await client.post('/api/_test', { files: { 'a.policy.yaml': TESTS } });
  expect([ran.status, ran.body.data.passed, ran.body.data.failed]).toEqual([200, 1, 0]);
  expect(ran.body.data.coverage.policies.length).toBeGreaterThan(0);
  const mutated = await client.post('/api/_test', { files: { 'a.policy.yaml': TESTS }, mutate: true });
  expect(mutated.body.data.mutants).toContainEqual(
    expect.objectContaining({ path: expect.stringContaining('posts'), verdict: 'killed' }),
  );
  const broken = await client.post('/api/_test', {
    files: { 'a.policy.yaml': TESTS.replace('posts, as', 'pots, as') },
  });
  expect([broken.status, broken.body.errors[0].pointer]).toEqual([422, '/files/a.policy.yaml']);
  expect((await new Client(server.url).post('/api/_test', { files: {} })).status).toBe(401);
  expect((await new Client(server.url).get('/api/_test')).status).toBe(401);
});

test('a save moves the pages of the studio to another path', async () => {
  const page = async (path: string) =>
    (await fetch(`${server.url}${path}`, { headers: { Accept: 'text/html' } })).status;
  expect([await page('/studio'), await page('/ops')]).toEqual([200, 404]);
  writeFileSync(FILE, `${TWO}studio: { path: /ops }\n`);
  await expect.poll(() => page('/ops'), { timeout: 20_000 }).toBe(200);
  expect(await page('/studio')).toBe(404);
});
