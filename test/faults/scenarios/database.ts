/** Faults of the database, and their effect on pending requests. */
import assert from 'node:assert/strict';
import { Client } from '../../support/client.ts';
import { SilentProxy } from '../../support/postgres/silent-proxy.ts';
import { expectOnly, Load } from '../load.ts';
import type { Scenario } from '../scenario.ts';
import { isReady, median, pause, untilGood } from '../world.ts';

const crash: Scenario = {
  name: 'pg-crash',
  holds: 'a crash of PostgreSQL is 503, nothing is lost, and it is good again within 2 s of the recovery',
  async run(world) {
    const server = await world.serve();
    const load = new Load([await world.login(server)]);
    await pause(world.loadMs / 2);
    const [victim] = await world.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'bylaw' LIMIT 1`);
    process.kill(victim!.pid, 'SIGKILL');
    await untilGood(() => world.query('SELECT 1').then(() => true));
    assert((await untilGood(isReady(server))) < 2_000);
    await pause(world.loadMs / 2);
    expectOnly(await load.stop(), '200', '201', '503');
    await load.check(world);
  },
};

const terminated: Scenario = {
  name: 'backends-terminated',
  holds: 'losing half of the connections again and again loses nothing and is 503 at worst',
  async run(world) {
    const server = await world.serve();
    const load = new Load([await world.login(server)]);
    for (let round = 0; round < 10; round++) {
      await pause(world.loadMs / 10);
      await world.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bylaw' AND random() < 0.5`,
      );
    }
    expectOnly(await load.stop(), '200', '201', '503');
    await load.check(world);
  },
};

const stopped: Scenario = {
  name: 'pg-sigstop',
  holds: '/readyz answers within 1.5 s while PostgreSQL is stopped, and all requests succeed once it resumes',
  async run(world) {
    const server = await world.serve();
    const load = new Load([await world.login(server)]);
    await pause(500);
    const workers = await world.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'bylaw'`);
    const pids = [await world.postmaster(), ...workers.map(({ pid }) => pid as number)];
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    try {
      const since = performance.now();
      const { status, headers } = await new Client(server.url).get('/readyz');
      assert.deepEqual([status, headers.has('retry-after')], [503, true]);
      assert(performance.now() - since < 1_500);
      await pause(world.loadMs);
    } finally {
      for (const pid of pids.reverse()) process.kill(pid, 'SIGCONT');
    }
    assert((await untilGood(isReady(server))) < 3_000);
    await pause(500);
    expectOnly(await load.stop(), '200', '201', '503');
    await load.check(world);
  },
};

const silentFailover: Scenario = {
  name: 'silent-failover',
  holds: 'connections that go silent are given up within 8 s and another server is found under the same URL',
  async run(world) {
    const proxy = await SilentProxy.open(world.postgres.url);
    world.afterwards(() => proxy.close());
    const server = await world.serve({ databaseUrl: proxy.url });
    const load = new Load([await world.login(server)]);
    await pause(1_000);
    assert(proxy.silence() > 0);
    const client = await world.login(server);
    const took = await untilGood(async () => (await client.get('/api/notes?limit=1')).status === 200, 8_000);
    await untilGood(isReady(server));
    await pause(world.loadMs);
    console.log(`         reads are answered again after ${took.toFixed(0)} ms`);
    expectOnly(await load.stop(), '200', '201', '503');
    await load.check(world);
  },
};

const tableLocked: Scenario = {
  name: 'table-locked',
  holds: 'a reader of a locked table waits as long as a read may take; all other requests are answered; nothing is 500',
  async run(world) {
    const server = await world.serve();
    const client = await world.login(server);
    const holder = await world.connect();
    const load = new Load([client]);
    await pause(world.loadMs / 2);
    const before = await load.stop();
    await holder.query('BEGIN; LOCK TABLE others IN ACCESS EXCLUSIVE MODE');
    const waiting = Array.from({ length: 12 }, (_, n) => client.get(`/api/others?limit=${n * 5 + 5}`));
    const during = new Load([client]);
    await pause(world.loadMs);
    const beside = await during.stop();
    await holder.query('COMMIT');
    expectOnly(beside, '200', '201');
    assert(beside.readTimes.length > before.readTimes.length / 2, `${beside.readTimes.length} reads were answered`);
    // The time of some ends on the table; that of the others ends while they wait behind these, which are their caller's own.
    for (const { status, body } of await Promise.all(waiting))
      assert(status === 200 || /^(?:query_too_expensive|rate_limited)$/.test(body.code), `${status} ${body.code}`);
    await during.check(world);
  },
};

const limiterLocked: Scenario = {
  name: 'limiter-row-locked',
  holds: 'logins that wait for a row of the limits hold up no other request',
  async run(world) {
    const server = await world.serve({ env: { BYLAW_RATE_LIMIT: 'on' } });
    const client = await world.login(server);
    const anonymous = new Client(server.url);
    await anonymous.post('/api/auth/login', { email: 'nobody@example.org', password: 'wrong' });
    const holder = await world.connect();
    await holder.query('BEGIN; LOCK TABLE "_auth_limits" IN ROW EXCLUSIVE MODE');
    await holder.query('SELECT * FROM "_auth_limits" FOR UPDATE');
    const logins = Array.from({ length: 8 }, () =>
      anonymous.post('/api/auth/login', { email: 'nobody@example.org', password: 'wrong' }),
    );
    const times: number[] = [];
    const end = performance.now() + world.loadMs;
    while (performance.now() < end) {
      const since = performance.now();
      assert.equal((await client.get('/api/notes?limit=1')).status, 200);
      times.push(performance.now() - since);
    }
    await holder.query('COMMIT');
    await Promise.all(logins);
    assert(median(times) < 100, `p50 ${median(times)} ms`);
    assert(Math.max(...times) < 2_000, `slowest ${Math.max(...times)} ms`);
  },
};

export const DATABASE_SCENARIOS: readonly Scenario[] = [
  crash,
  terminated,
  stopped,
  silentFailover,
  tableLocked,
  limiterLocked,
];
