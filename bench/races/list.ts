/** Lists a second, next to two servers written by hand: by a rule over the row, by a rule that walks to a team, and where few rows match. */
import type { Bench } from '../support/bench.ts';
import { fewMatch, ownOrPublished, ownOrTeam } from '../support/race/courses.ts';
import { raceAll } from '../support/race/race-all.ts';

const bench: Bench = {
  name: 'list',
  question: 'lists a second of 100,000 documents, next to two servers written by hand',
  run: (options) => raceAll([ownOrPublished, ownOrTeam, fewMatch], options),
};
export default bench;
