/** `node --expose-gc kept-policies.ts NAME`: prints the bytes by which the process grows for 1,000 policies of a library. */
import { Random } from '../../test/fuzz/random.ts';
import { type Decide, madeDecisions } from './decisions.ts';
import { PEERS } from './peers.ts';

const KEPT = 1000;
/** Made before, so that what all policies share is not counted. */
const FIRST = 10;

const peer = PEERS.find(({ name }) => name === process.argv[2]);
const { gc } = globalThis;
if (peer === undefined || gc === undefined) throw new Error('expected the name of a library, and --expose-gc');
const decisions = madeDecisions(new Random(1)).slice(0, 1);
const policies: Decide[] = [];
const keep = (number: number): void => {
  const decide = peer.compile(number)(decisions);
  decide(0);
  policies.push(decide);
};
for (let i = 1; i <= FIRST; i++) keep(i);
const bytes = (): number => {
  gc();
  return process.memoryUsage.rss();
};
const before = bytes();
for (let i = 1; i <= KEPT; i++) keep(FIRST + i);
console.log(policies.length === KEPT + FIRST ? bytes() - before : Number.NaN);
