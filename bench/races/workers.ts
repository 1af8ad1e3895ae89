/**
 * Measures the gain and the cost of a second worker, next to a second process of the handwritten
 * servers: on two processors that the database and this program share, any server gains little.
 */
import { cpus } from 'node:os';
import type { Bench, BenchOptions } from '../support/bench.ts';
import { nameOf } from '../support/documents-world.ts';
import { record } from '../support/figures.ts';
import { byId, ownOrPublished, patch } from '../support/race/courses.ts';
import { gainOf, type Lap } from '../support/race/race.ts';
import { raceAll } from '../support/race/race-all.ts';

/** Two workers, the database, and the program that asks. */
const ENOUGH_CPUS = 6;
const GAIN = 1.7;
const SERVERS = ['bylaw', 'usual', 'best'];
const PROCESSES = 2;

const COURSES = [ownOrPublished, byId, patch];

async function run(options: BenchOptions): Promise<void> {
  const courses = COURSES.map((course) => ({
    ...course,
    bench: 'workers',
    title: `${course.title}, two workers`,
    targets: [],
  }));
  const world = { rows: 100_000, processes: PROCESSES };
  const mostMemory = { bylaw: 150, [nameOf('bylaw', PROCESSES)]: 300 };
  const all = await raceAll(courses, { ...options, world, mostMemory });
  const gains = all.map((laps) => SERVERS.map((name) => gainOfSecond(name, laps)));
  const notes = gains.map((each, i) => judge(all[i]![0]!.course.title, each));
  record({
    bench: 'workers',
    title: 'what a second process brings',
    unit: '× one process',
    kind: 'bars',
    labels: SERVERS,
    series: COURSES.map(({ title }, i) => ({ name: title, values: gains[i]!.map((gain) => Number(gain.toFixed(3))) })),
    notes,
  });
}

function gainOfSecond(server: string, laps: readonly Lap[]): number {
  const [one, two] = laps.filter(({ contender }) => contender.server === server);
  return gainOf(two!, one!);
}

function judge(title: string, [gain, usual, best]: readonly number[]): string {
  const isMissed = cpus().length >= ENOUGH_CPUS && gain! < GAIN;
  if (isMissed) process.exitCode = 1;
  const verdict = isMissed ? 'MISSED' : cpus().length >= ENOUGH_CPUS ? 'held  ' : 'too few processors to judge:';
  const line =
    `${verdict} ${title}: ${gain!.toFixed(2)} × one worker (at least ${GAIN} on ${ENOUGH_CPUS} processors); ` +
    `by hand: usual ${usual!.toFixed(2)} ×, best ${best!.toFixed(2)} ×`;
  console.log(line);
  return line;
}

const bench: Bench = {
  name: 'workers',
  question: 'lists, reads and patches a second with two workers, next to one, and to two servers written by hand',
  run,
};
export default bench;
