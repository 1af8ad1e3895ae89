/** The way to a worker is a hint: where it leads nowhere, or to another server, the coordinator answers. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { askWorkersDirectly } from '../../src/cluster/direct-workers.ts';
import { nameOfNode, Placements } from '../../src/cluster/placements.ts';
import { hashOfUuid } from '../../src/cluster/uuid-hash.ts';
import { urlAt, WorkerNode } from '../../src/cluster/worker-node.ts';
import { type Database, type StatementTaker, StoreError } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { startOptions } from '../../src/service/system-tables.ts';
import { param, raw, sql, tableIdent, uuid } from '../../src/sql.ts';
import { CitusCluster, type CitusNode, citusBinaries } from '../support/cluster/citus.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { findBinaries, freePort, isolatedUrl, startPostgres } from '../support/postgres.ts';
import { clusterUrl, schemaFrom } from '../support/service.ts';
import { until } from '../support/until.ts';
import { DirectDatabase } from './direct.ts';

const SCHEMA = schemaFrom(readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8'));

describe('the hash of a uuid', () => {
  test('a uuid has the hash that PostgreSQL gives it', async () => {
    const db = await openEmbeddedDatabase();
    const ids = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'];
    for (let i = 0; i < 200; i++) ids.push(randomUUID());
    const rows = await db.rows(
      sql`SELECT uuid_hash(id) FROM unnest(${param('uuid[]', ids)}) WITH ORDINALITY AS u (id, n) ORDER BY n`,
    );
    expect(ids.map(hashOfUuid)).toEqual(rows.map(([hash]) => Number(hash)));
    await db.close();
  });

  test('another text has no hash', () => {
    expect(['', 'x', '../', `${randomUUID()}0`].map(hashOfUuid)).toEqual([undefined, undefined, undefined, undefined]);
  });
});

describe('the URL of a worker', () => {
  test.each([
    [
      'postgres://me:pass%40word@coordinator/app?sslmode=verify-full',
      'postgres://me:pass%40word@w:6/app?sslmode=verify-full',
    ],
    ['postgresql://coordinator:5432/app', 'postgresql://w:6/app'],
    ['postgres://me@/app?host=/run/postgresql&port=5433&options=-c%20a%3Db', 'postgres://me@w:6/app?options=-c+a%3Db'],
    ['postgres:///app', 'postgres://w:6/app'],
  ])('the URL of %s keeps all but the machine', (url, wanted) => {
    expect(urlAt(url, { host: 'w', port: 6 })).toBe(wanted);
  });

  test('an address of IPv6 has brackets', () => {
    expect(urlAt('postgres://c/app', { host: 'fd00::7', port: 6 })).toBe('postgres://[fd00::7]:6/app');
  });
});

describe('a database without workers', () => {
  test('an embedded database is refused', async () => {
    const db = await openEmbeddedDatabase();
    await expect(askWorkersDirectly(db, { url: 'postgres://x/y', say: () => undefined })).rejects.toThrow(
      'not a cluster',
    );
    await db.close();
  });

  test('a pooler is refused', async () => {
    const cluster = { isCluster: true } as Database;
    const asked = askWorkersDirectly(cluster, { url: 'postgres://x/y?pooler=transaction', say: () => undefined });
    await expect(asked).rejects.toThrow('a pooler does not lead to workers');
  });
});

/** The hash of this id shows whether a cluster hashes as we do. */
const HASHED = '5f0e6a1c-3d92-4b7e-8c41-a9d27be3f608';
const ONE_SHARD = {
  tables: { documents: [1, [102]] },
  everywhere: { users: 103 },
  shards: [[1, -(2 ** 31), 2 ** 31 - 1, 1]],
};

/** A coordinator that counts what it is asked. */
function counting(): { readonly db: Database; readonly asked: string[] } {
  const asked: string[] = [];
  const answer = async (statement: { readonly text: string }) => {
    asked.push(statement.text);
    return [['coordinator']];
  };
  return { asked, db: { rows: answer, write: answer } as unknown as Database };
}

describe.skipIf(findBinaries() === undefined || process.env.TEST_QUICK === '1')('a worker that fails', () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  beforeAll(async () => {
    server = await startPostgres({ isOverTcp: true });
  });
  afterAll(() => server?.stop());

  test('a worker that cannot be reached leaves reads and writes to the coordinator', async () => {
    const { db, asked } = counting();
    const node = new WorkerNode(db, 'postgres://me@c/app', { host: '127.0.0.1', port: await freePort() });
    expect(await node.rows(raw('SELECT 1'))).toEqual([['coordinator']]);
    expect(await node.write(raw('INSERT INTO a VALUES (1)'))).toEqual([['coordinator']]);
    expect(asked.length).toBe(2);
    await node.close();
  });

  test('a worker without the table leaves reads and writes to the coordinator', async () => {
    const { db, asked } = counting();
    const node = await nodeAtPostgres(db);
    await node.rows(raw('SELECT * FROM nowhere'));
    await node.write(raw('INSERT INTO nowhere VALUES (1)'));
    expect(asked.length).toBe(2);
    await node.close();
  });

  test('a write that breaks a constraint is not written again', async () => {
    const { db, asked } = counting();
    const node = await nodeAtPostgres(db);
    await node.write(raw('CREATE TABLE taken (id int PRIMARY KEY)'));
    await node.write(raw('INSERT INTO taken VALUES (1)'));
    const again = node.write(raw('INSERT INTO taken VALUES (1)'));
    await expect(again).rejects.toMatchObject({ kind: 'unique' });
    expect(asked).toEqual([]);
    await node.close();
  });

  test('a write whose connection is lost is not written again', async () => {
    const { db, asked } = counting();
    const node = await nodeAtPostgres(db);
    const lost = node.write(raw('SELECT pg_terminate_backend(pg_backend_pid())'));
    await expect(lost).rejects.toBeInstanceOf(StoreError);
    expect(asked).toEqual([]);
    await node.close();
  });

  test('a write that ends with an internal error, of which the outcome is unknown, is 503 and not written again', async () => {
    const { db, asked } = counting();
    const node = await nodeAtPostgres(db);
    const broken = node.write(raw(`DO $$ BEGIN RAISE EXCEPTION 'of Citus' USING ERRCODE = 'XX000'; END $$`));
    await expect(broken).rejects.toMatchObject({ kind: 'unavailable' });
    expect(asked).toEqual([]);
    await node.close();
  });

  test('a read beyond its time is not read again', async () => {
    const { db, asked } = counting();
    const node = await nodeAtPostgres(db);
    const slow = node.rows(raw('SELECT pg_sleep(10)'), { lane: 'slow', limitMs: 100 });
    await expect(slow).rejects.toMatchObject({ kind: 'time_limit' });
    expect(asked).toEqual([]);
    await node.close();
  });

  test('the catalogue is read again after 5 seconds, and no worker is known after 15 without it', async () => {
    const url = await isolatedUrl(server!.url);
    const port = Number(new URL(url).port);
    const db = await openDatabase({ url });
    const catalogue = { hash: hashOfUuid(HASHED), workers: [{ group: 1, host: '127.0.0.1', port }], ...ONE_SHARD };
    let reads = 0;
    let isAway = false;
    const rows: Database['rows'] = async (statement) => {
      if (statement.text.includes('pg_dist_node')) {
        if (isAway) throw new StoreError('unavailable', undefined);
        reads++;
        return [[JSON.stringify(catalogue)]];
      }
      if (!statement.text.includes('master_run_on_worker')) return db.rows(statement);
      const [[identity] = []] = await db.rows(raw((statement.values[2] as string[])[0]!));
      return [['127.0.0.1', String(port), identity!]];
    };
    vi.useFakeTimers({ toFake: ['performance'] });
    const coordinator = { isCluster: true, rows, close: () => db.close() } as unknown as Database;
    const asked = await askWorkersDirectly(coordinator, { url, say: () => undefined });
    try {
      const isKnownAfter = (milliseconds: number): boolean => {
        vi.advanceTimersByTime(milliseconds);
        return asked.nodeFor!('documents', HASHED) !== undefined;
      };
      expect([isKnownAfter(0), isKnownAfter(4_999), reads]).toEqual([true, true, 1]);
      expect(isKnownAfter(2)).toBe(true);
      await until('the catalogue was read again', () => reads === 2);
      isAway = true;
      expect([isKnownAfter(14_990), isKnownAfter(20), reads]).toEqual([true, false, 2]);
    } finally {
      vi.useRealTimers();
      await asked.close();
    }
  });

  async function nodeAtPostgres(db: Database): Promise<WorkerNode> {
    const url = await isolatedUrl(server!.url);
    return new WorkerNode(db, url, { host: '127.0.0.1', port: Number(new URL(url).port) });
  }
});

describe.skipIf(clusterUrl === '' || citusBinaries() === undefined)('workers asked directly (distributed)', () => {
  let cluster: CitusCluster;
  const direct = new DirectDatabase();
  let user = '';

  const teamAt = async (worker: CitusNode): Promise<string> => {
    const placements = await Placements.read(direct.db);
    for (;;) {
      const team = randomUUID();
      if (placements.find('documents', team)?.worker !== nameOfNode({ host: '127.0.0.1', port: worker.port })) continue;
      await direct.db.run(
        sql`INSERT INTO teams (id, name, created_by_id) VALUES (${uuid(team)}, ${param('text', team)}, ${uuid(user)})`,
      );
      return team;
    }
  };
  const insertion = (team: string) => sql`
    INSERT INTO documents (id, slug, title, status, team_id, owner_id)
    VALUES (${uuid(randomUUID())}, ${param('text', randomUUID())}, 'a title', 'draft', ${uuid(team)}, ${uuid(user)})
    RETURNING id`;
  const count = (team: string) => sql`SELECT count(*) FROM ${tableIdent('documents')} WHERE team_id = ${uuid(team)}`;
  const titleOf = async (team: string) =>
    (await direct.db.rows(sql`SELECT title FROM ${tableIdent('documents')} WHERE team_id = ${uuid(team)}`))[0]![0];
  const moveShard = async (team: string, from: CitusNode, to: CitusNode) =>
    cluster.coordinator.query(
      `SELECT citus_move_shard_placement(get_shard_id_for_distribution_column($4::regclass, $1::uuid),
                                         '127.0.0.1', $2::int, '127.0.0.1', $3::int, 'block_writes')`,
      [team, from.port, to.port, `${await schemaOf(direct.db)}.documents`],
    );
  const portOf = async (node: StatementTaker) => Number((await node.rows(raw('SELECT inet_server_port()')))[0]![0]);

  beforeAll(async () => {
    cluster = await CitusCluster.start();
    const url = direct.connect(await isolatedUrl(cluster.coordinator.url));
    const db = await openDatabase({ url });
    await applyMigration(db, SCHEMA, startOptions());
    const [row] = await db.rows(raw('SELECT gen_random_uuid()'));
    user = row![0]!;
    await db.run(sql`INSERT INTO users (id, email) VALUES (${uuid(user)}, 'a@example.org')`);
    await direct.watch(db);
  });
  afterAll(async () => {
    await direct.db?.close();
    await cluster?.stop();
  });

  test('each worker is found at the start', () => {
    const names = cluster.workers.map(({ port }) => `the worker 127.0.0.1:${port} is asked directly`);
    expect(direct.said.toSorted()).toEqual(names.toSorted());
  });

  test('a node reads what the coordinator wrote, and the coordinator what a node wrote', async () => {
    const team = await teamAt(cluster.workers[0]!);
    const node = direct.db.nodeFor!('documents', team)!;
    await direct.db.write(insertion(team));
    await node.write(insertion(team));
    expect(await node.rows(count(team))).toEqual([['2']]);
    expect(await direct.db.rows(count(team))).toEqual([['2']]);
  });

  test('a read names the shard of the tenant', async () => {
    const team = await teamAt(cluster.workers[0]!);
    await direct.db.write(insertion(team));
    const asked = sql`SELECT current_query() FROM ${tableIdent('documents')} WHERE team_id = ${uuid(team)}`;
    const [[here] = []] = await direct.db.nodeFor!('documents', team)!.rows(asked);
    expect(here).toMatch(/FROM "documents_\d+" WHERE/);
  });

  test('a node decides and writes in one transaction, and does neither once the shard has moved', async () => {
    const [from, to] = cluster.workers as [CitusNode, CitusNode];
    const team = await teamAt(from);
    await direct.db.write(insertion(team));
    const node = direct.db.nodeFor!('documents', team)!;
    const decision = sql`
      SELECT set_config('bylaw.judged', title, true) FROM ${tableIdent('documents')} WHERE team_id = ${uuid(team)}`;
    const update = sql`
      UPDATE documents SET title = title || '!' WHERE team_id = ${uuid(team)} AND title = current_setting('bylaw.judged', true)
      RETURNING title`;
    expect(await node.writeDecided!(decision, update)).toEqual({ decided: [['a title']], written: [['a title!']] });
    await moveShard(team, from, to);
    expect(await node.writeDecided!(decision, update)).toBeUndefined();
    expect(await titleOf(team)).toBe('a title!');
    expect(await node.writeDecided!(decision, update)).toBeUndefined();
  });

  test('a worker keeps the plan of a statement, and no decision of an earlier transaction', async () => {
    const team = await teamAt(cluster.workers[0]!);
    await direct.db.write(insertion(team));
    const node = direct.db.nodeFor!('documents', team)!;
    const decide = (title: string) => sql`
      SELECT set_config('bylaw.judged', ${param('text', title)}, true)
        FROM ${tableIdent('documents')} WHERE team_id = ${uuid(team)}`;
    const update = sql`
      UPDATE documents SET status = 'published' WHERE team_id = ${uuid(team)} AND title = current_setting('bylaw.judged', true)
      RETURNING title`;
    // PostgreSQL and Citus keep plans after five executions at the latest.
    for (let i = 0; i < 16; i++) {
      const isAllowed = i % 3 !== 0;
      const title = isAllowed ? 'a title' : ['', 'another'][i % 2]!;
      const { written } = (await node.writeDecided!(decide(title), update))!;
      expect(written).toEqual(isAllowed ? [['a title']] : []);
    }
    const undecided = sql`SELECT 1 FROM ${tableIdent('documents')} WHERE team_id = ${uuid(randomUUID())}`;
    expect(await node.writeDecided!(undecided, update)).toEqual({ decided: [], written: [] });
  });

  test('a table that is not distributed has no node, and another text than an id has none', () => {
    const { nodeFor } = direct.db;
    expect(nodeFor!('teams', randomUUID())).toBeUndefined();
    expect(nodeFor!('documents', '127.0.0.1')).toBeUndefined();
  });

  test('a node answers for a tenant whose shard has moved away, and another node is known after a while', async () => {
    const [from, to] = cluster.workers as [CitusNode, CitusNode];
    const team = await teamAt(from);
    const former = direct.db.nodeFor!('documents', team)!;
    await former.write(insertion(team));
    await moveShard(team, from, to);
    await former.write(insertion(team));
    expect(await former.rows(count(team))).toEqual([['2']]);
    await until(
      'the new worker is known',
      async () => (await portOf(direct.db.nodeFor!('documents', team)!)) === to.port,
    );
    expect(await direct.db.nodeFor!('documents', team)!.rows(count(team))).toEqual([['2']]);
  });

  test('a server that is not the worker is not asked', async () => {
    const other = await cluster.addNode();
    const node = new WorkerNode(direct.db, cluster.coordinator.url, { host: '127.0.0.1', port: other.port });
    const identity = await node.identity();
    node.prove(identity!, { server: 'another', session: identity!.session });
    expect(node.isProvenSince(0)).toBe(false);
    node.prove(identity!, identity);
    expect(node.isProvenSince(0)).toBe(true);
    await node.close();
  });

  test('a killed worker is asked through the coordinator, and directly once it is back', async () => {
    const [worker] = cluster.workers as [CitusNode];
    const team = await teamAt(worker);
    await worker.kill();
    const node = direct.db.nodeFor!('documents', team);
    await expect((node ?? direct.db).rows(count(team))).rejects.toMatchObject({ kind: 'unavailable' });
    expect(direct.db.nodeFor!('documents', team)).toBeUndefined();
    await worker.start();
    await direct.knows('documents', team);
    expect(await direct.db.nodeFor!('documents', team)!.rows(count(team))).toEqual([['0']]);
  });
});

async function schemaOf(db: Database): Promise<string> {
  const [row] = await db.rows(raw('SELECT current_schema()'));
  return row![0]!;
}
