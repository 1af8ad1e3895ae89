/** Lists a second while two connections count, next to two servers written by hand. */
import type { Bench } from '../support/bench.ts';
import { besideCounts } from '../support/race/courses.ts';
import { raceAll } from '../support/race/race-all.ts';

const bench: Bench = {
  name: 'mixed',
  question: 'lists a second while two connections count, next to two servers written by hand',
  run: (options) => raceAll([besideCounts], options),
};
export default bench;
