/** A streaming replica that lags, lacks a column, and dies. */
import assert from 'node:assert/strict';
import { hasStandby, Standby } from '../../support/standby.ts';
import type { Scenario } from '../scenario.ts';
import { pause, SCHEMA, untilGood } from '../world.ts';

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
    // Who writes for the first time in ten seconds is known there some milliseconds later.
    await create('news');
    await pause(1_500);
    // The same user on another node, while the replica stands still but is still fresh.
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
