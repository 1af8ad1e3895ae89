/** A migration of a large table that is killed again and again, beside an old node under load. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { Client } from '../../support/client.ts';
import { MAIN } from '../../support/process.ts';
import { expectOnly, Load } from '../load.ts';
import type { Scenario } from '../scenario.ts';
import { type FaultWorld, isReady, median, SCHEMA, untilGood } from '../world.ts';

const ROWS = 300_000;
/** Nothing that an old node could not serve with. */
const NEWER = SCHEMA.replace(
  'title: { type: string, required: true, max: 200 }\n      n: { type: int }',
  `title: { type: string, required: true, max: 200, index: true, search: true }
      n: { type: int, unique: true }
      kind: { type: string, required: true, default: plain }
    relations:
      other: { kind: belongs_to, collection: others }`,
);

/** `bylaw migrate apply`, killed before its nth statement has ended. → whether it came to its end. */
async function migrate(world: FaultWorld, schema: string, n: number): Promise<boolean> {
  const place = ['--schema', schema, '--database-url', world.postgres.url];
  const child = spawn(process.execPath, [MAIN, 'migrate', 'apply', ...place], { stdio: ['ignore', 'pipe', 'inherit'] });
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.once('exit', resolve);
  let seen = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text.split(';\n').length - 1;
    if (seen >= n) setTimeout(() => child.kill('SIGKILL'), 5);
  });
  return (await promise) === 0;
}

export const MIGRATION_KILLED: Scenario = {
  name: 'migration-killed',
  holds:
    'a migration of a large table that is killed at each statement goes on, and old nodes answer everything meanwhile, as fast as before',
  async run(world) {
    const old = await world.serve();
    await world.query(
      `INSERT INTO notes (id, created_at, updated_at, title)
       SELECT gen_random_uuid(), now(), now(), 'note ' || n FROM generate_series(1, ${ROWS}) n`,
    );
    const schema = world.file('newer.yaml', NEWER);
    const load = new Load([await world.login(old)]);
    let kills = 0;
    // Later in each round, so that it comes to its end.
    while (!(await migrate(world, schema, 1 + Math.floor(kills / 2)))) kills++;
    assert(kills >= 6, `it was killed ${kills} times`);
    const tally = await load.stop();
    expectOnly(tally, '200', '201');
    assert(median(tally.readTimes) < 200, `p50 of reads is ${median(tally.readTimes)} ms`);
    const slowest = Math.max(...tally.readTimes);
    // Longer, and something shut the table: the copies alone take longer.
    assert(slowest < 3_000, `the slowest read took ${slowest} ms`);
    assert.equal((await new Client(old.url).get('/readyz')).status, 200);
    await load.check(world);
    const invalid = await world.query('SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid');
    assert.deepEqual(invalid, []);
    const newer = await world.serve({ schema: NEWER });
    await untilGood(isReady(newer));
    assert.doesNotMatch(newer.log(), /running, while the tables are in use/);
    console.log(`         killed ${kills} times; the slowest read took ${slowest.toFixed(0)} ms`);
    // The old node wrote rows beside the last pages, and knows of no copies.
    await old.end('SIGTERM');
    assert(await migrate(world, schema, Number.POSITIVE_INFINITY));
    const [row] = await world.query(`SELECT count(*)::int AS n FROM notes WHERE "title~folded" IS NULL`);
    assert.equal(row!.n, 0, 'rows without a copy');
  },
};
