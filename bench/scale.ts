/** Measures lists over more and more rows, and the first pages of many lists in the database. */
import type { Bench, BenchOptions } from './support/bench.ts';
import { record } from './support/figures.ts';
import { measureFirstPages } from './support/first-pages.ts';
import { verdict } from './support/measure.ts';
import { fewMatch, ownOrPublished, ownOrTeam } from './support/race/courses.ts';
import { type Course, type Lap, medianOf } from './support/race/race.ts';
import { raceAll } from './support/race/race-all.ts';

const SIZES = [1_000, 100_000];
/**
 * A list with less than a page of matches has less to do: each is judged from the least size that
 * fills its page.
 */
const COURSES = [
  { course: ownOrPublished, fullAt: 0 },
  { course: ownOrTeam, fullAt: 1 },
  { course: fewMatch, fullAt: 1 },
];

async function run(options: BenchOptions): Promise<void> {
  await measureFirstPages(options.rows, options.seconds);
  const bySize: (readonly (readonly Lap[])[])[] = [];
  const sizes = [...SIZES, options.rows];
  for (const rows of sizes) {
    const courses = COURSES.map(
      ({ course }): Course => ({
        ...course,
        bench: 'scale',
        title: `${course.title}; ${rows.toLocaleString('en')} rows`,
        targets: [],
      }),
    );
    bySize.push(await raceAll(courses, { ...options, world: { rows } }));
  }
  for (const [i, { course, fullAt }] of COURSES.entries()) {
    const laps = bySize.map((all) => all[i]!);
    draw(course.title, sizes, laps);
    const costs = laps.map(([bylaw]) => medianOf(bylaw!, 'serverUs') + medianOf(bylaw!, 'databaseUs'));
    const [least, most] = [sizes[fullAt]!, sizes.at(-1)!].map((rows) => rows.toLocaleString('en'));
    const label = `${course.title}: processor time of a list at ${most} rows ÷ that at ${least}`;
    verdict(label, costs.at(-1)! / costs[fullAt]!, { limit: 1.1, unit: '×' });
  }
}

function draw(title: string, sizes: readonly number[], laps: readonly (readonly Lap[])[]): void {
  const names = laps[0]!.map(({ contender }) => contender.name);
  const series = names.map((name, i) => ({ name, values: laps.map((lap) => medianOf(lap[i]!, 'requestsPerSecond')) }));
  record({ bench: 'scale', title, unit: 'requests/s', kind: 'lines', labels: sizes.map(String), series, notes: [] });
}

const bench: Bench = { name: 'scale', question: 'lists a second of 1,000, 100,000 and 1,000,000 documents', run };
export default bench;
