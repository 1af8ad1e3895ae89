/** Reads a second by id, next to two servers written by hand. */
import type { Bench } from '../support/bench.ts';
import { byId } from '../support/race/courses.ts';
import { raceAll } from '../support/race/race-all.ts';

const bench: Bench = {
  name: 'read',
  question: 'reads a second by id, next to two servers written by hand',
  run: (options) => raceAll([byId], options),
};
export default bench;
