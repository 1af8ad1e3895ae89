// @module-tag long
/** Many at once, and a process that is killed in the middle. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { openDatabase } from '../../../src/database/open-database.ts';
import { Client } from '../../support/client.ts';
import { fillDataFolder } from '../../support/embedded/embedded.ts';
import { isolatedUrl } from '../../support/postgres.ts';
import { serve } from '../../support/process.ts';
import { describeOnBoth, ROUTES_SCHEMA, startServiceOn } from '../../support/service.ts';

const times = <T>(count: number, make: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i)));

describeOnBoth(
  'at once',
  (service) => {
    test('100 creates make 100 records in one order', async () => {
      const { client } = await service.user();
      const answers = await times(100, (i) => client.post('/api/counters', { data: { name: `n${i}` } }));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
      const listed = (await client.get('/api/counters?limit=100')).body.data;
      expect(listed.map(({ name }: { name: string }) => name).toSorted()).toEqual(
        answers.map((_, i) => `n${i}`).toSorted(),
      );
      expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(100);
    });

    test('100 patches of one record: each is answered, the last one wins, none is torn', async () => {
      const { client } = await service.user();
      const { id } = (await client.post('/api/counters', { data: { name: 'shared' } })).body.data;
      const answers = await times(100, (i) => client.patch(`/api/counters/${id}`, { data: { name: `v${i}`, n: i } }));
      for (const { status, body } of answers) expect([status, body.data.name]).toEqual([200, `v${body.data.n}`]);
      const last = (await client.get(`/api/counters/${id}`)).body.data;
      expect(last.name).toBe(`v${last.n}`);
      expect(answers.map(({ body }) => body.data)).toContainEqual(last);
    });

    test('50 patches with If-Match: of those with one tag, one wins, and no change is lost', async () => {
      const { client } = await service.user();
      const { id } = (await client.post('/api/counters', { data: { name: 'counted' } })).body.data;
      const increment = async (): Promise<void> => {
        for (;;) {
          const { headers, body } = await client.get(`/api/counters/${id}`);
          const { status } = await client.patch(
            `/api/counters/${id}`,
            { data: { n: body.data.n + 1 } },
            { 'If-Match': headers.get('etag')! },
          );
          if (status === 200) return;
          expect(status).toBe(412);
        }
      };
      await times(5, async () => {
        for (let i = 0; i < 10; i++) await increment();
      });
      expect((await client.get(`/api/counters/${id}`)).body.data.n).toBe(50);
    });

    test('exactly one of 50 creates with one unique value succeeds', async () => {
      const { client } = await service.user();
      const statuses = (await times(50, () => client.post('/api/posts', { data: { title: 't', slug: 'wanted' } }))).map(
        ({ status }) => status,
      );
      expect(statuses.toSorted()).toEqual([201, ...Array.from({ length: 49 }, () => 409)]);
    });

    test('exactly one of 20 updates to one unique value succeeds', async () => {
      const { client } = await service.user();
      const made = await times(20, () => client.post('/api/posts', { data: { title: 't' } }));
      const statuses = await times(20, async (i) => {
        const { status } = await client.patch(`/api/posts/${made[i]!.body.data.id}`, { data: { slug: 'moved' } });
        return status;
      });
      expect(statuses.toSorted()).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
    });

    test('deletes and patches of one record: no 500, and the record is gone', async () => {
      const { client } = await service.user();
      const { id } = (await client.post('/api/counters', { data: { name: 'x' } })).body.data;
      const answers = await times(40, (i) =>
        i % 4 === 3 ? client.delete(`/api/counters/${id}`) : client.patch(`/api/counters/${id}`, { data: { n: i } }),
      );
      expect(answers.map(({ status }) => status).filter((status) => ![200, 204, 404].includes(status))).toEqual([]);
      expect(answers.filter(({ status }) => status === 204)).toHaveLength(1);
      expect((await client.get(`/api/counters/${id}`)).status).toBe(404);
    });
  },
  { schema: ROUTES_SCHEMA },
);

const KILLED_SCHEMA = `
roles: [admin]
collections:
  tags: { fields: { name: string }, access: { view: true, create: true } }
  posts:
    fields: { title: string }
    relations: { tags: { kind: many_to_many, collection: tags } }
    access: { view: true, create: true, update: true }
`;

describe.each(['embedded', 'postgres'] as const)('kill -9 (%s)', (kind) => {
  test.skipIf(kind === 'postgres' && inject('postgresUrl') === '')(
    'loses no record that was acknowledged, and keeps none that is torn',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'bylaw-kill-'));
      const schema = join(folder, 'bylaw.yaml');
      const data = join(folder, 'data');
      const url = kind === 'embedded' ? undefined : await isolatedUrl(inject('postgresUrl'));
      const admin = { BYLAW_ADMIN_EMAIL: 'admin@example.org', BYLAW_ADMIN_PASSWORD: 'a password of tests' };
      const login = async (address: string): Promise<Client> => {
        const { body } = await new Client(address).post('/api/auth/login', {
          email: admin.BYLAW_ADMIN_EMAIL,
          password: admin.BYLAW_ADMIN_PASSWORD,
        });
        return new Client(address, { Authorization: `Bearer ${body.access_token}` });
      };
      try {
        await writeFile(schema, KILLED_SCHEMA);
        if (kind === 'embedded') await fillDataFolder(data);
        const where = ['--data', data, ...(url === undefined ? [] : ['--database-url', url])];
        const first = await serve(['--schema', schema, ...where], admin);
        const client = await login(first.url);
        const tag = (await client.post('/api/tags', { data: { name: 't' } })).body.data.id as string;
        const acknowledged: string[] = [];
        const enough = Promise.withResolvers<void>();
        const load = times(8, async (worker) => {
          for (let i = 0; ; i++) {
            const { status, body } = await client.post('/api/posts', {
              data: { title: `${worker}/${i}`, tags: { add: [tag] } },
            });
            if (status !== 201) throw new Error(`answered ${status}`);
            if (acknowledged.push(body.data.id) >= 60) enough.resolve();
          }
        }).catch((error: unknown) => error);
        await Promise.race([enough.promise, load]);
        await first.end('SIGKILL');
        expect(await load).toBeInstanceOf(TypeError);

        const db = await openDatabase(url === undefined ? { dataDir: data } : { url, pipelines: 1 });
        const second = await startServiceOn(db, KILLED_SCHEMA, { BYLAW_DATA: data });
        const again = await login(second.url);
        const found = new Map<string, number>();
        for (let offset = 0, more = true; more; offset += 100) {
          const { body } = await again.get(`/api/posts?limit=100&offset=${offset}&expand=tags`);
          for (const post of body.data) found.set(post.id, post.expand.tags.length);
          more = body.page.has_more;
        }
        expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
        // A record and its links are one write.
        expect([...found.values()].filter((links) => links !== 1)).toEqual([]);
        await second.stop();
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
    90_000,
  );
});
