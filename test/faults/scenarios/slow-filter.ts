/** Cheap reads beside an unindexed filter over a million rows. */
import assert from 'node:assert/strict';
import type { Client } from '../../support/client.ts';
import type { Scenario } from '../scenario.ts';
import { median, pause } from '../world.ts';

const ROWS = 1_000_000;
const idOf = (n: number): string => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;

async function readsById(client: Client, milliseconds: number): Promise<number> {
  const times: number[] = [];
  const end = performance.now() + milliseconds;
  for (let n = 1; performance.now() < end; n++) {
    const since = performance.now();
    const { status } = await client.get(`/api/notes/${idOf((n * 7919) % ROWS)}`);
    assert.equal(status, 200);
    times.push(performance.now() - since);
  }
  return median(times);
}

/** Asks for a title that no record has, until `isOver`. */
async function askSlowly(client: Client, n: number, isOver: () => boolean): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let i = 0; !isOver(); i++) {
    const { status } = await client.get(`/api/notes?title=nothing-${n}-${i}`);
    statuses.push(status);
    if (status !== 200) await pause(200);
  }
  return statuses;
}

/**
 * The slow clients take the processors, too. The same statement on a connection of its own measures
 * their cost alone, so that only waiting in the service counts.
 */
export const SLOW_FILTER: Scenario = {
  name: 'slow-filter',
  holds:
    '16 clients with an unindexed filter on a million rows: p50 of reads by id ≤ 3 × what processors alone account for',
  async run(world) {
    const server = await world.serve();
    const client = await world.login(server);
    await world.query(
      `INSERT INTO notes (id, created_at, updated_at, title)
       SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), 'note ' || n
         FROM generate_series(0, ${ROWS - 1}) n`,
    );
    await world.query('ANALYZE notes');
    await readsById(client, 500);
    const alone = await readsById(client, world.loadMs);
    let isOver = false;
    const slow = Array.from({ length: 16 }, (_, n) => askSlowly(client, n, () => isOver));
    await pause(1_500);
    const beside = await readsById(client, world.loadMs);
    const statement = await statementAlone(world);
    isOver = true;
    const statuses = (await Promise.all(slow)).flat();
    const share = statuses.filter((status) => status === 200).length / statuses.length;
    console.log(
      `         reads by id: p50 ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside (the bare statement ${statement.toFixed(1)} ms); ` +
        `of ${statuses.length} slow requests ${(share * 100).toFixed(0)} % were answered`,
    );
    // The clients are one caller, who holds up no other caller.
    assert.deepEqual(new Set(statuses).difference(new Set([200, 400, 429])), new Set());
    assert(beside <= 3 * Math.max(alone, statement), `${beside.toFixed(1)} ms`);
  },
};

async function statementAlone(world: Parameters<Scenario['run']>[0]): Promise<number> {
  const client = await world.connect();
  const times: number[] = [];
  for (let n = 1; n < 200; n++) {
    const since = performance.now();
    await client.query('SELECT title FROM notes WHERE id = $1', [idOf((n * 104_729) % ROWS)]);
    times.push(performance.now() - since);
  }
  return median(times);
}
