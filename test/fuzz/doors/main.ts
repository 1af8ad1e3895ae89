/**
 * `npm run fuzz -- writes --seconds 60 --seed 1` · `--writes n` as many instead · `--world n` one world alone · `--from n` the worlds from there
 * on. Exits with 1 when anything disagrees, or too little was compared.
 */
import { LONG_RUN, startPostgres } from '../../support/postgres.ts';
import { readOptions } from '../../support/run-options.ts';
import { printShortfalls } from '../floor.ts';
import { DoorLane } from './door-lane.ts';
import type { DoorCounts } from './doors.ts';
import { loadDoors } from './store-modules.ts';

/** The floor, a tenth of what a busy machine writes in a second. */
const LEAST_A_SECOND = 0.3;

export async function fuzzWrites(args: readonly string[]): Promise<number> {
  const { values: options } = readOptions('npm run fuzz -- writes', {
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      writes: { type: 'string' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      world: { type: 'string' },
      from: { type: 'string', default: '0' },
    },
  });
  const [seed, wanted] = [Number(options.seed), Number(options.writes ?? Number.POSITIVE_INFINITY)];
  const seconds = Number(options.seconds);
  const server = await startPostgres({ collation: 'c', settings: LONG_RUN });
  if (server === undefined) throw new Error('the fuzz of writes needs a PostgreSQL');
  const end = options.writes === undefined ? Date.now() + seconds * 1000 : Number.POSITIVE_INFINITY;
  const counts: DoorCounts = { worlds: 0, writes: 0, allowed: 0 };
  const isOver = (): boolean => Date.now() > end || counts.writes >= wanted;
  const run = { doors: await loadDoors(), seed, counts, isOver };
  const lane = new DoorLane(server.url, run, Number(options.world ?? options.from));
  let found: string | undefined;
  do found = await lane.next();
  while (found === undefined && options.world === undefined && !isOver());
  await server.stop();
  if (found !== undefined) console.log(found);
  console.log(
    `writes              ${counts.writes}, in ${counts.worlds} worlds, ${counts.allowed} of them allowed (seed ${seed})`,
  );
  const least =
    options.world === undefined ? Math.floor(options.writes === undefined ? LEAST_A_SECOND * seconds : wanted) : 1;
  const isShort = found === undefined && printShortfalls([{ what: 'writes', count: counts.writes, least }]) > 0;
  return found !== undefined || isShort ? 1 : 0;
}
