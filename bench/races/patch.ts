/** Patches a second, next to two servers written by hand. */
import type { Bench } from '../support/bench.ts';
import { patch, patchOfTeam } from '../support/race/courses.ts';
import { raceAll } from '../support/race/race-all.ts';

const bench: Bench = {
  name: 'patch',
  question: 'patches a second, next to two servers written by hand',
  run: (options) => raceAll([patch, patchOfTeam], options),
};
export default bench;
