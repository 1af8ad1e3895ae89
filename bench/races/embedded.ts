/**
 * The embedded database under the same load, next to two servers written by hand on the same engine. The limits of processor time are half of
 * what PocketBase 0.36.8 (SQLite) took for the same requests on such a machine: 1,220 µs a list, 868 µs a patch.
 */
import type { Bench } from '../support/bench.ts';
import { byId, create, ownOrPublished, patch } from '../support/race/courses.ts';
import { raceAll } from '../support/race/race-all.ts';

/** Each server has rows of its own, so what is created comes after the lists that all must answer alike. */
const LIMITS = [
  { course: ownOrPublished, us: 610 },
  { course: byId, us: 295 },
  { course: create, us: 480 },
  { course: patch, us: 434 },
];

const bench: Bench = {
  name: 'embedded',
  question: 'lists, reads, creates and patches a second on the embedded database, next to two servers written by hand',
  async run(options) {
    const courses = LIMITS.map(({ course, us }) => ({
      ...course,
      bench: 'embedded',
      title: `${course.title}, embedded`,
      targets: [{ serverUs: us }, { p99: 'ms', atMost: 100 }] as const,
    }));
    await raceAll(courses, { ...options, world: { rows: 100_000, isEmbedded: true } });
  },
};
export default bench;
