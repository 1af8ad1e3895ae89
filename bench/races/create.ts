/** Creates a second, next to two servers written by hand. */
import type { Bench } from '../support/bench.ts';
import { create, createInTeam } from '../support/race/courses.ts';
import { raceAll } from '../support/race/race-all.ts';

const bench: Bench = {
  name: 'create',
  question: 'creates a second, next to two servers written by hand',
  run: (options) => raceAll([create, createInTeam], options),
};
export default bench;
