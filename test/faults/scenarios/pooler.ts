/** pgbouncer in transaction mode between the service and the database. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { Client } from '../../support/client.ts';
import { hasPgbouncer, Pgbouncer } from '../../support/postgres/pgbouncer.ts';
import { expectOnly, Load } from '../load.ts';
import type { Scenario } from '../scenario.ts';
import { isReady, pause, untilGood } from '../world.ts';

/** The issuer of tokens that both nodes take. */
const BASE_URL = 'http://service.example';

export const POOLER: Scenario = {
  name: 'pgbouncer',
  holds:
    'behind a pooler in transaction mode all works; without the setting, or the settings of the role, a sentence says what to do',
  skip: () => (hasPgbouncer() ? undefined : 'pgbouncer is not installed (apt-get install pgbouncer)'),
  async run(world) {
    const bouncer = await Pgbouncer.start(world.postgres.url);
    world.afterwards(() => bouncer.stop());
    const reasonOf = (databaseUrl: string): Promise<string> =>
      world.serve({ databaseUrl }).then(
        () => 'started',
        (error: Error) => error.message,
      );
    assert.match(await reasonOf(bouncer.url), /add `pooler=transaction` to the query of DATABASE_URL/);
    const url = `${bouncer.url}?pooler=transaction`;
    const asked = await reasonOf(url);
    const statements = [...asked.matchAll(/ALTER ROLE .*;/g)].map(([statement]) => statement);
    assert(statements.length > 0, asked);
    for (const statement of statements) await world.query(statement);
    // Connections that the pooler has keep the settings that they began with.
    await world.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'`,
    );
    await pause(500);

    const first = await world.serve({ databaseUrl: url, env: { DATABASE_DIRECT_URL: world.postgres.url, BASE_URL } });
    const second = await world.serve({ databaseUrl: url, env: { BASE_URL } });
    await untilGood(isReady(first));
    const client = await world.login(first);
    const load = new Load([client, client.with({})], 8, 8);
    await pause(world.loadMs);
    expectOnly(await load.stop(), '200', '201');
    await load.check(world);
    const { body } = await client.post('/api/notes', { data: { title: 'a time' } });
    assert.match(body.data.created_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

    // A write waits for a lock no longer than it does without a pooler.
    const holder = new pg.Client(world.postgres.url);
    await holder.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM notes WHERE id = $1 FOR UPDATE', [body.data.id]);
    const change = () => client.patch(`/api/notes/${body.data.id}`, { data: { title: 'changed' } });
    const since = performance.now();
    assert.equal((await change()).status, 503);
    assert(performance.now() - since < 5_000, `waited for ${performance.now() - since} ms`);
    await holder.end();
    await untilGood(async () => (await change()).status === 200, 2_000);

    // A session that ends on one node is over on the other, which hears nothing.
    const there = new Client(second.url, client.headers);
    assert.equal((await there.get('/api/notes?limit=1')).status, 200);
    assert.equal((await client.post('/api/auth/logout')).status, 204);
    const took = await untilGood(async () => (await there.get('/api/notes?limit=1')).status === 401, 2_000);
    assert(took < 1_500, `${took} ms`);
  },
};
