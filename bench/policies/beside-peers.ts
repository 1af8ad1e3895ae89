/** P3 beside the libraries that answer the same question: a decision, a policy made ready, and the memory of 1,000 policies. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Random } from '../../test/fuzz/random.ts';
import type { Bench, BenchOptions } from '../support/bench.ts';
import { measure, ratio } from '../support/measure.ts';
import { agree, type Decision, madeDecisions, RECORDS } from './decisions.ts';
import { PEERS, type PolicyPeer } from './peers.ts';

async function run({ seconds, seed }: BenchOptions): Promise<void> {
  const decisions = madeDecisions(new Random(seed));
  const decided = PEERS.map((peer) => ({ name: peer.name, decide: peer.compile(0)(decisions) }));
  agree(decided);
  const deciding = measure(
    decided.map(({ name, decide }) => ({ name, run: (times) => over(times, (i) => decide(i % RECORDS)) })),
    seconds,
  );
  const made = measure(
    PEERS.map((peer) => ({ name: peer.name, run: (times) => over(times, (i) => firstDecision(peer, i, decisions)) })),
    seconds,
  );
  const bytes = PEERS.map(({ name }) => bytesKept(name));
  for (const [i, { name }] of PEERS.entries()) {
    const cells = [
      `${(deciding[i]!.median / 1000).toFixed(3).padStart(9)} µs a decision`,
      `(${ratio(deciding[i]!, deciding[0]!).toFixed(1)} ×)`.padStart(12),
      `${(made[i]!.median / 1000).toFixed(0).padStart(7)} µs until the first`,
      `${(bytes[i]! / 1024 ** 2).toFixed(1).padStart(7)} MiB for 1,000`,
    ];
    console.log(`${name.padEnd(28)}${cells.join('')}`);
  }
}

function over(times: number, work: (i: number) => unknown): unknown {
  let last: unknown;
  for (let i = 0; i < times; i++) last = work(i);
  return last;
}

/** Libraries that compile at the first decision do so here. */
const firstDecision = (peer: PolicyPeer, i: number, decisions: readonly Decision[]): boolean =>
  peer.compile(1 + (i % 1000))([decisions[i % RECORDS]!])(0);

/** The growth of a process that makes and keeps 1,000 policies of one library. */
function bytesKept(name: string): number {
  const program = join(import.meta.dirname, 'kept-policies.ts');
  return Number(execFileSync(process.execPath, ['--expose-gc', program, name], { encoding: 'utf8' }));
}

const bench: Bench = {
  name: 'policies',
  question: 'what do a decision, a policy and the memory of 1,000 policies cost, next to other libraries?',
  run,
};
export default bench;
