/** A database that starts some seconds after the service. */
import assert from 'node:assert/strict';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Scenario } from '../scenario.ts';
import { isReady, pause, untilGood } from '../world.ts';

export const LATE_DATABASE: Scenario = {
  name: 'late-database',
  holds: 'a start waits for an unreachable database and logs it; a wrong name fails at once',
  skip: () => (process.env.TEST_DATABASE_URL === undefined ? undefined : 'it hides the socket of the server'),
  async run(world) {
    const host = new URL(world.postgres.url.replace('@/', '@localhost/')).searchParams.get('host')!;
    const [socket, hidden] = [join(host, '.s.PGSQL.5432'), join(host, 'hidden')];
    await rename(socket, hidden);
    const starting = world.serve();
    await pause(4_000);
    await rename(hidden, socket);
    const server = await starting;
    assert.match(server.log(), /the database cannot be reached \(.*\); trying for 30 s/);
    await untilGood(isReady(server));
    const since = performance.now();
    const databaseUrl = world.postgres.url.replace('/postgres?', '/missing?');
    await assert.rejects(world.serve({ databaseUrl }), /database "missing" does not exist/);
    assert(performance.now() - since < 15_000, 'it does not wait for another name');
  },
};
