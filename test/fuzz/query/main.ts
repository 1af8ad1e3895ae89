/** `npm run fuzz -- query --seconds 60 --seed 1` · `--world n` one world alone. Exits with 1 when anything disagrees. */
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startPostgres } from '../../support/postgres.ts';
import type { Lane } from '../run.ts';
import { loadQueryCompiler } from './compiler.ts';
import { noFilterCounts, runFilters } from './filters.ts';

export async function fuzzQuery(args: readonly string[]): Promise<number> {
  const { values: options } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      world: { type: 'string' },
      from: { type: 'string', default: '0' },
    },
  });
  const seed = Number(options.seed);
  const end = Date.now() + Number(options.seconds) * 1000;
  const counts = noFilterCounts();
  let found = 0;
  const isOver = (): boolean => Date.now() > end || found > 0;
  const run = { compiler: await loadQueryCompiler(), seed, counts, isOver };
  const stops: (() => Promise<void>)[] = [];
  const began = performance.now();
  let next = Number(options.world ?? options.from);
  const last = options.world === undefined ? Number.POSITIVE_INFINITY : next;
  try {
    const lanes = await openLanes(stops);
    await Promise.all(
      lanes.map(async (lane) => {
        while (!isOver() && next <= last) {
          const disagreement = await runFilters(next++, lane, run);
          if (disagreement === undefined) continue;
          found++;
          console.log(disagreement);
        }
      }),
    );
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
  const seconds = (performance.now() - began) / 1000;
  const { worlds, filters, rejected, decisions, hidden } = counts;
  console.log(`worlds              ${worlds}`);
  console.log(`filters             ${filters}, without a form or fitting params ${rejected}`);
  console.log(`decisions compared  ${decisions} in ${seconds.toFixed(0)} s, others by what is hidden ${hidden}`);
  console.log(`disagreements       ${found} (seed ${seed})`);
  return found === 0 ? 0 : 1;
}

/** With the default collation C, and with ICU's en-US. */
async function openLanes(stops: (() => Promise<void>)[]): Promise<readonly Lane[]> {
  const lanes: Lane[] = [];
  for (const collation of ['c', 'icu'] as const) {
    const server = await startPostgres({ collation });
    if (server === undefined) throw new Error('the fuzz of queries needs a PostgreSQL');
    stops.push(() => server.stop());
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    stops.push(() => client.end());
    lanes.push({ database: client as unknown as Lane['database'], backend: 'PostgreSQL' });
  }
  return lanes;
}
