/** Faults of the processes of the service. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Client } from '../../support/client.ts';
import { childrenOf } from '../../support/process.ts';
import { expectOnly, Load } from '../load.ts';
import type { Scenario } from '../scenario.ts';
import { type FaultWorld, isReady, pause, untilGood } from '../world.ts';

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Six creates that wait for a lock, which is released a second and a half after `act`. */
async function writesDuring(world: FaultWorld, client: Client, act: () => void): Promise<readonly number[]> {
  const holder = await world.connect();
  await holder.query('BEGIN; LOCK TABLE others IN SHARE MODE');
  const writes = Array.from({ length: 6 }, (_, n) =>
    client.post('/api/others', { data: { title: `waits ${n}` } }).then(
      ({ status }) => status,
      () => 0,
    ),
  );
  await pause(500);
  act();
  await pause(1_500);
  await holder.query('COMMIT');
  return Promise.all(writes);
}

const earlyDeath: Scenario = {
  name: 'worker-early-death',
  holds: 'a worker that is killed right after its start is replaced, again and again, and the service goes on',
  async run(world) {
    // With port 0, another one would be taken while no worker is left.
    const server = await world.serve({ flags: ['--workers', '2', '--port', String(await freePort())] });
    const load = new Load([await world.login(server)]);
    for (let round = 0; round < 3; round++) {
      const [victim] = childrenOf(server.pid);
      process.kill(victim!, 'SIGKILL');
      await pause(1_000);
    }
    await untilGood(async () => childrenOf(server.pid).length === 2, 20_000);
    await untilGood(isReady(server));
    await pause(world.loadMs);
    expectOnly(await load.stop(), '200', '201', '503', 'lost');
    await load.check(world);
    assert.equal(await server.end('SIGTERM'), 0);
  },
};

const groupSignal: Scenario = {
  name: 'sigterm-group',
  holds: 'a SIGTERM to the whole group interrupts no request',
  async run(world) {
    const server = await world.serve({ flags: ['--workers', '2'] });
    const client = await world.login(server);
    const pids = [...childrenOf(server.pid), server.pid];
    const statuses = await writesDuring(world, client, () => {
      for (const pid of pids) process.kill(pid, 'SIGTERM');
    });
    assert.deepEqual(statuses, Array(6).fill(201));
    // It is ending already.
    assert.equal(await server.end('SIGCONT'), 0);
  },
};

const drain: Scenario = {
  name: 'sigterm',
  holds:
    'SIGTERM under load: /readyz says so first, what runs is finished, and no request on a kept connection is lost',
  async run(world) {
    const server = await world.serve();
    const client = await world.login(server);
    const load = new Load([client], 6, 6);
    await pause(world.loadMs / 2);
    process.kill(server.pid, 'SIGTERM');
    await untilGood(async () => (await client.get('/readyz')).status === 503, 1_000);
    const closing = await client.get('/api/notes?limit=1');
    assert.deepEqual([closing.status, closing.headers.get('connection')], [200, 'close']);
    // As a balancer does, the clients leave once it is not ready.
    const tally = await load.stop();
    assert.equal(await server.end('SIGCONT'), 0);
    expectOnly(tally, '200', '201');
    await load.check(world);
  },
};

export const PROCESS_SCENARIOS: readonly Scenario[] = [earlyDeath, groupSignal, drain];
