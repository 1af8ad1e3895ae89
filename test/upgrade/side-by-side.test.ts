// @module-tag long
/** A rolling deploy: a node of an earlier version and one of this version on the same PostgreSQL and files. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openDatabase } from '../../src/database/open-database.ts';
import type { Service } from '../../src/service/start-service.ts';
import { type Answer, Client } from '../support/client.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { type Server, serve } from '../support/process.ts';
import { startServiceOn } from '../support/service.ts';
import { isKnown, LAST_LANDED, unpack, WITH_EARLIER_KEYS } from './earlier-version.ts';
import { FILLED_ADMIN, FILLED_ENV, FILLED_SCHEMA, type Filled, fill } from './filling.ts';

const postgresUrl = inject('postgresUrl');
const versions = postgresUrl === '' ? [] : [LAST_LANDED, WITH_EARLIER_KEYS].filter(isKnown);

describe.skipIf(versions.length === 0).each(versions)('$name beside this version', ({ name, commit }) => {
  let folder: string;
  let server: Server;
  let service: Service;
  let filled: Filled;
  let older: Client;
  let newer: Client;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bylaw-beside-'));
    const url = await isolatedUrl(postgresUrl);
    const schema = join(folder, 'bylaw.yaml');
    const data = join(folder, 'data');
    const main = unpack({ name, commit }, join(folder, name));
    await writeFile(schema, FILLED_SCHEMA);
    server = await serve(['--schema', schema, '--database-url', url, '--data', data], FILLED_ENV, undefined, main);
    filled = await fill(server.url);
    const db = await openDatabase({ url, poolSize: 4, pipelines: 1 });
    service = await startServiceOn(db, FILLED_SCHEMA, { ...FILLED_ENV, BYLAW_DATA: data });
    const { body } = await new Client(server.url).post('/api/auth/login', filled.user);
    // A token is good at both nodes.
    const headers = { Authorization: `Bearer ${body.access_token}` };
    [older, newer] = [new Client(server.url, headers), new Client(service.url, headers)];
  });
  afterAll(async () => {
    await service?.stop();
    await server?.end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  const titled = async (title: string): Promise<number> =>
    (await newer.get(`/api/notes?title=${title}`)).body.data.length;
  const owner = async (): Promise<string> => (await newer.get('/api/auth/me')).body.user.id;
  const keyed = async (title: string) => {
    const body = { data: { title, owner: await owner() } };
    return (client: Client): Promise<Answer> => client.post('/api/notes', body, { 'Idempotency-Key': title });
  };

  test('both nodes serve, and read the same', async () => {
    // The version before the last is ready only for the schema that it has written itself.
    for (const client of name === LAST_LANDED.name ? [older, newer] : [newer])
      expect((await client.get('/readyz')).status).toBe(200);
    for (const [path, text] of Object.entries(filled.lists))
      expect([(await older.get(path)).text, (await newer.get(path)).text]).toEqual([text, text]);
    for (const [id, content] of Object.entries(filled.files))
      expect((await newer.get(`/api/files/${id}/content`)).text).toBe(content);
  });

  test('both nodes change the records of the other', async () => {
    const data = { title: 'to be changed', code: 'beside', owner: await owner() };
    const { id } = (await older.post('/api/notes', { data })).body.data;
    expect((await newer.patch(`/api/notes/${id}`, { data: { n: 1 } })).status).toBe(200);
    expect((await older.patch(`/api/notes/${id}`, { data: { x: 0.5 } })).body.data).toMatchObject({ n: 1, x: 0.5 });
    expect((await newer.post('/api/notes', { data })).status).toBe(409);
    expect((await newer.delete(`/api/notes/${id}`)).status).toBe(204);
    expect((await older.get(`/api/notes/${id}`)).status).toBe(404);
  });

  test('a session that one node ends is over at the other', async () => {
    const { body } = await new Client(service.url).post('/api/auth/login', FILLED_ADMIN);
    const headers = { Authorization: `Bearer ${body.access_token}` };
    expect((await new Client(server.url, headers).get('/api/auth/me')).status).toBe(200);
    await new Client(service.url, headers).post('/api/auth/logout');
    const refresh = { refresh_token: body.refresh_token };
    expect((await new Client(server.url).post('/api/auth/token/refresh', refresh)).status).toBe(401);
  });

  test.each([
    ['the older node', 'the newer', () => [older, newer]],
    ['the newer node', 'the older', () => [newer, older]],
  ] as const)('a key of %s writes once at %s', async (first, _, nodes) => {
    const [one, other] = nodes() as [Client, Client];
    const send = await keyed(`key-of-${first.replaceAll(' ', '-')}`);
    const answers = [await send(one), await send(other), await send(one)];
    const { id } = answers[0]!.body.data;
    expect(answers.map(({ status, body }) => [status, body.data.id])).toEqual([1, 2, 3].map(() => [201, id]));
    expect(await titled(`key-of-${first.replaceAll(' ', '-')}`)).toBe(1);
    const body = { data: { title: 'another', owner: await owner() } };
    const mismatch = await other.post('/api/notes', body, {
      'Idempotency-Key': `key-of-${first.replaceAll(' ', '-')}`,
    });
    expect(mismatch.body.code).toBe('idempotency_mismatch');
  });

  test('a key that both nodes get at once writes once', async () => {
    for (let round = 0; round < 5; round++) {
      const send = await keyed(`at-once-${round}`);
      const answers = await Promise.all([send(older), send(newer), send(older), send(newer)]);
      // The earlier version reports a serialization that it gives up as 503.
      const made = answers.filter(({ status }) => status === 201).map(({ body }) => body.data.id);
      expect([made.length > 0, new Set(made).size, await titled(`at-once-${round}`)]).toEqual([true, 1, 1]);
    }
  });
});
