/** A streaming replica that lags, lacks a column, and dies. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { openDatabase } from '../../../src/database/open-database.ts';
import { sql, uuid } from '../../../src/sql.ts';
import { hasStandby, Standby } from '../../support/postgres/standby.ts';
import type { Scenario } from '../scenario.ts';
import { type FaultWorld, pause, SCHEMA, untilGood } from '../world.ts';

const MAX_LAG_S = 5;

/** Each writes for the first time, and reads through another process while the replica is paused. */
async function readFirstWrites(world: FaultWorld, standby: Standby): Promise<void> {
  const replicaUrl = `${standby.url}&max_lag=${MAX_LAG_S}`;
  const open = () => openDatabase({ url: world.postgres.url, replicaUrl });
  const [here, there] = await Promise.all([open(), open()]);
  world.afterwards(() => Promise.all([here.close(), there.close()]));
  await world.query('CREATE TABLE marks (id uuid)');
  const everything = sql`SELECT id FROM marks`;
  // A new listener may have missed announcements as old as the lag.
  await pause(MAX_LAG_S * 1_000 + 1_000);
  await standby.pause();
  const end = performance.now() + (MAX_LAG_S * 1_000) / 2;
  let count = 0;
  for (; performance.now() < end; count++) {
    const id = randomUUID();
    await here.write(sql`INSERT INTO marks VALUES (${uuid(id)}) RETURNING id`);
    await here.noteWrite(id);
    const found = await there.replicaFor(id).rows(sql`SELECT id FROM marks WHERE id = ${uuid(id)}`);
    assert.equal(found.length, 1, `write ${count + 1} is read`);
  }
  // A user without writes always reads from the replica.
  assert.deepEqual(await there.replicaFor(randomUUID()).rows(everything), []);
  await standby.resume();
  await untilGood(async () => (await there.replicaFor(randomUUID()).rows(everything)).length === count);
}

export const REPLICA: Scenario = {
  name: 'replica',
  holds:
    'own writes are read at once on every node, nothing older than a second is read, and a dead or stale replica costs nothing',
  skip: () => (hasStandby() ? undefined : 'it needs pg_basebackup'),
  async run(world) {
    const standby = await Standby.start(world.postgres.url);
    world.afterwards(() => standby.stop());
    const server = await world.serve({ env: { DATABASE_REPLICA_URL: standby.url } });
    const client = await world.login(server);
    const create = async (title: string): Promise<string> => {
      const { status, body } = await client.post('/api/notes', { data: { title } });
      assert.equal(status, 201);
      return body.data.id;
    };
    const statusOf = async (id: string): Promise<number> => (await client.get(`/api/notes/${id}`)).status;
    const readsThere = async (): Promise<number> => {
      const [row] = await standby.query(
        `SELECT sum(calls)::int AS n FROM (SELECT count(*) AS calls FROM pg_stat_activity WHERE application_name = 'bylaw' AND query LIKE '%"notes"%') a`,
      );
      return row!.n ?? 0;
    };

    for (let i = 0; i < 20; i++) assert.equal(await statusOf(await create(`own ${i}`)), 200);
    const peer = await world.serve({ env: { DATABASE_REPLICA_URL: standby.url } });
    const there = await world.login(peer);
    // The same user on another node, while the replica is paused but still fresh.
    for (let round = 0; round < 3; round++) {
      await standby.pause();
      for (let i = 0; i < 10; i++) {
        const id = await create(`elsewhere ${round} ${i}`);
        assert.equal((await there.get(`/api/notes/${id}`)).status, 200);
        const patched = await there.patch(`/api/notes/${id}`, { data: { n: i } });
        assert.equal(patched.status, 200);
        assert.equal((await client.get(`/api/notes/${id}`)).body.data.n, i);
      }
      await standby.resume();
      await pause(1_500);
    }
    await readFirstWrites(world, standby);
    const old = await create('seen everywhere');
    await pause(2_000);
    assert.equal(await statusOf(old), 200);
    await untilGood(
      async () => (await client.get('/api/notes?limit=5')).status === 200 && (await readsThere()) > 0,
      15_000,
    );

    await standby.pause();
    const late = await create('not on the replica');
    await pause(11_000);
    // The caller's own writes are no longer remembered: the replica is left alone because it lags.
    assert.equal(await statusOf(late), 200);
    const newer = await world.serve({
      schema: SCHEMA.replace('n: { type: int }', 'n: { type: int }\n      note: string'),
      env: { DATABASE_REPLICA_URL: standby.url },
    });
    const other = await world.login(newer);
    for (let i = 0; i < 10; i++) assert.equal((await other.get(`/api/notes?limit=${i + 1}`)).status, 200);
    await standby.resume();
    await pause(1_000);
    assert.equal((await other.get('/api/notes?limit=3')).status, 200);

    await standby.kill();
    for (let i = 0; i < 20; i++) {
      const since = performance.now();
      assert.equal(await statusOf(late), 200);
      assert(performance.now() - since < 2_000);
    }
  },
};
