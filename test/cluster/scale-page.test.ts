/** docs/scale.md, followed word for word on nodes of this machine. Names of hosts and ids are those of the test, and there are few shards. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CitusCluster, citusBinaries } from '../support/cluster/citus.ts';
import { run } from '../support/process.ts';
import { TestService } from '../support/service.ts';
import { Recorder } from './recorder.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const PAGE = readFileSync(join(DOCS, 'scale.md'), 'utf8');
const SCHEMA = readFileSync(join(DOCS, 'distributed.yaml'), 'utf8');

const sectionOf = (title: string): string => {
  const from = PAGE.indexOf(`\n## ${title}\n`);
  return PAGE.slice(from, PAGE.indexOf('\n## ', from + 5));
};

/** The blocks of code in a section, without their indentation. */
const blocksOf = (title: string, language: string): readonly string[] =>
  [...sectionOf(title).matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)\\n *\`\`\``, 'gms'))].map(
    ([, indent, text]) => text!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );

const SETTINGS = [...blocksOf('A cluster', 'ini')[0]!.matchAll(/^(\w+) = '?(\w+)'?$/gm)].map(
  ([, name, value]) => [name!, value!] as const,
);

describe.skipIf(process.env.TEST_CITUS_URL === undefined || citusBinaries() === undefined)(
  'the page about scale (distributed)',
  () => {
    let cluster: CitusCluster;
    let folder: string;
    let team = '';
    const [extension = '', nodes = '', look = '', point = '', grow = '', isolate = ''] = blocksOf('A cluster', 'sql');

    const sent = async (text: string): Promise<readonly pg.QueryResultRow[]> => {
      const here = text
        .replace(/shard_count = \d+/, 'shard_count = 4')
        .replace(/'coordinator\.internal', 5432/, `'127.0.0.1', ${cluster.coordinator.port}`)
        .replaceAll(
          /'worker-(\d)\.internal', 5432/g,
          (_, n: string) => `'127.0.0.1', ${cluster.workers[Number(n) - 1]!.port}`,
        )
        .replace('<team id>', team);
      let rows: readonly pg.QueryResultRow[] = [];
      for (const statement of here.split(';').filter((each) => each.trim() !== ''))
        rows = await cluster.coordinator.query(statement);
      return rows;
    };
    const bylaw = (command: string, file: string, stdin = '') =>
      run({
        stdin,
        args: command
          .replace(/^bylaw /, '')
          .replace('<team id>', team)
          .split(' '),
        env: { DATABASE_URL: cluster.coordinator.url, BYLAW_SCHEMA: join(folder, file), BYLAW_DATA: folder },
        cwd: folder,
      });
    const withService = async (work: (recorder: Recorder) => Promise<void>): Promise<void> => {
      const service = new TestService('cluster');
      await service.start({ schema: SCHEMA, connect: () => cluster.coordinator.url, env: { BYLAW_DATA: folder } });
      try {
        await work(new Recorder(service.url));
      } finally {
        await service.stop();
      }
    };

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'bylaw-scale-'));
      cluster = await CitusCluster.start(0);
    });
    afterAll(async () => {
      await cluster?.stop();
      await rm(folder, { recursive: true, force: true });
    });

    test('the nodes have the settings of step 1', async () => {
      for (const [name, value] of SETTINGS) {
        const [row] = await cluster.coordinator.query(`SHOW ${name}`);
        if (/^\d+$/.test(value)) expect([name, Number(row![name]) > 0]).toEqual([name, true]);
        else expect([name, row![name]]).toEqual([name, value]);
      }
      expect(extension).toBe('CREATE EXTENSION citus;');
    });

    test('the steps make a cluster and distribute a service with records', async () => {
      // The test's cluster has the extension on each node, and no other part of the steps.
      await cluster.addNode();
      await sent(nodes);
      await writeFile(join(folder, 'plain.yaml'), SCHEMA.replaceAll(/^ +distribute: .*\n/gm, ''));
      await writeFile(join(folder, 'divided.yaml'), SCHEMA);
      expect(await bylaw('bylaw migrate apply', 'plain.yaml')).toMatchObject({ code: 0 });
      const add = 'bylaw user add ann@example.org --role member --password-stdin';
      expect(await bylaw(add, 'plain.yaml', 'a password of tests\n')).toMatchObject({ code: 0 });
      const [apply = ''] = blocksOf('A cluster', 'sh');
      expect(await bylaw(apply, 'divided.yaml')).toMatchObject({ code: 0 });
      const tables = new Map((await sent(look)).map((row) => [row.table_name as string, row]));
      expect(tables.get('documents')).toMatchObject({
        citus_table_type: 'distributed',
        distribution_column: 'team_id',
      });
      expect(tables.get('teams')).toMatchObject({ citus_table_type: 'reference' });
    });

    test('the service serves, and its cluster grows', async () => {
      await withService(async (recorder) => {
        const password = 'a password of tests';
        const anybody = recorder.as();
        await anybody.post('/api/auth/register', { email: 'bob@example.org', password });
        const { body } = await anybody.post('/api/auth/login', { email: 'bob@example.org', password });
        const bob = recorder.as({ Authorization: `Bearer ${body.access_token}` });
        team = (await bob.post('/api/teams', { data: { name: 'red' } })).body.data.id;
        await bob.post('/api/memberships', { data: { team, user: body.user.id, role: 'owner' } });
        await bob.patch(`/api/users/${body.user.id}`, { data: { team } });
        for (let n = 0; n < 5; n++)
          expect((await bob.post('/api/documents', { data: { slug: `s${n}`, title: 'A title' } })).status).toBe(201);
        await sent(point);
        await cluster.addNode();
        await sent(grow);
        for (let state = ''; state !== 'finished'; ) {
          const [row] = await cluster.coordinator.query('SELECT state FROM citus_rebalance_status()');
          state = String(row?.state ?? 'finished');
          expect(state).not.toBe('failed');
          await new Promise((resolve) => setTimeout(resolve, 500));
        }
        await sent(isolate);
        const listed = await bob.get('/api/documents');
        expect([listed.status, listed.body.data.length]).toEqual([200, 5]);
      });
    });

    test('a tenant leaves, comes back, and is deleted', async () => {
      const [block = ''] = blocksOf('One tenant', 'sh');
      const [leave = '', come = '', remove = ''] = block.split('\n');
      for (const command of [leave, remove, come, remove]) {
        const { code, stderr } = await bylaw(command, 'divided.yaml');
        expect([command, code, stderr]).toEqual([command, 0, expect.anything()]);
        const [row] = await cluster.coordinator.query('SELECT count(*)::int AS n FROM documents');
        expect([command, row!.n]).toEqual([command, command === remove ? 0 : 5]);
      }
    });
  },
);
