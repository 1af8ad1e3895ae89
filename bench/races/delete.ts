/** Deletes a second, next to two servers written by hand. */
import type { Bench } from '../support/bench.ts';
import { remove } from '../support/race/courses.ts';
import { raceAll } from '../support/race/race-all.ts';

const bench: Bench = {
  name: 'delete',
  question: 'deletes a second, next to two servers written by hand',
  run: (options) => raceAll([remove], options),
};
export default bench;
