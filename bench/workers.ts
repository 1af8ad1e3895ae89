/** What a second worker brings, and what it costs. Two processors that the database and this program use too leave nothing to gain. */
import { cpus } from 'node:os';
import type { Bench } from './support/bench.ts';
import { byId, ownOrPublished, patch } from './support/courses.ts';
import { medianOf } from './support/race.ts';
import { raceAll } from './support/race-all.ts';

/** Two workers, the database, and the program that asks. */
const ENOUGH_CPUS = 6;
const GAIN = 1.7;

const bench: Bench = {
  name: 'workers',
  question: 'lists, reads and patches a second with two workers, next to one',
  async run(options) {
    const courses = [ownOrPublished, byId, patch].map((course) => ({
      ...course,
      bench: 'workers',
      title: `${course.title}, two workers`,
      targets: [],
    }));
    const world = { rows: 100_000, workers: 2 };
    const all = await raceAll(courses, { ...options, world, mostMemory: { bylaw: 150, '2 workers': 300 } });
    for (const [one, two] of all) {
      const gain = medianOf(two!, 'requestsPerSecond') / medianOf(one!, 'requestsPerSecond');
      const isMissed = cpus().length >= ENOUGH_CPUS && gain < GAIN;
      if (isMissed) process.exitCode = 1;
      const verdict = isMissed ? 'MISSED' : cpus().length >= ENOUGH_CPUS ? 'held  ' : 'too few processors to judge:';
      console.log(
        `${verdict} ${one!.course.title}: ${gain.toFixed(2)} × one worker (at least ${GAIN} on ${ENOUGH_CPUS} processors)`,
      );
    }
  },
};
export default bench;
