/** Measures what an ordinary member notices of one who attacks: refusals, waiting, memory. */
import { ATTACKS } from './crowd/attacks.ts';
import { pause } from './crowd/member.ts';
import { GOALS, type Noticed, noticedBeside, refusalsOf } from './crowd/noticed.ts';
import { type CrowdKind, CrowdWorld } from './crowd/world.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { record } from './support/figures.ts';
import { residentMiB } from './support/processor-time.ts';

const DOCUMENTS = 100_000;
/** A garbage collector gives memory back when it likes; this long after an attack it has. */
const REST_MS = 5_000;

async function run({ seconds, rows }: BenchOptions): Promise<void> {
  for (const kind of ['postgres', 'embedded'] as const) await attackAll(kind, seconds, Math.min(rows, DOCUMENTS));
}

async function attackAll(kind: CrowdKind, seconds: number, documents: number): Promise<void> {
  const world = await CrowdWorld.open({ kind, documents });
  console.log(`\n  ${kind}: an ordinary member beside one who attacks, ${documents} documents`);
  try {
    await noticedBeside(world, seconds);
    const calm = await noticedBeside(world, seconds);
    const calmMiB = calm.afterMiB;
    print('no attack', calm, calmMiB);
    const all: Noticed[] = [];
    for (const attack of ATTACKS) {
      const noticed = await noticedBeside(world, seconds, attack);
      all.push(noticed);
      print(attack.name, noticed, calmMiB);
    }
    await pause(REST_MS);
    judge(kind, all, { calmMiB, restMiB: residentMiB(world.pid) });
  } finally {
    await world.close();
  }
}

const whole = (value: number, width: number): string => value.toFixed(0).padStart(width);

function print(name: string, noticed: Noticed, calmMiB: number): void {
  const { p99, healthP99, mostMiB, afterMiB, statuses } = noticed;
  const answers = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `  ${name.padEnd(42)} p99 ${whole(p99, 6)} ms  healthz ${whole(healthP99, 5)} ms` +
      `  +${whole(mostMiB - calmMiB, 4)} MiB, then +${whole(afterMiB - calmMiB, 4)}` +
      `  refused: ${refusalsOf(noticed)}   [${answers.join(', ')}]`,
  );
}

interface Memory {
  readonly calmMiB: number;
  readonly restMiB: number;
}

function judge(kind: CrowdKind, all: readonly Noticed[], { calmMiB, restMiB }: Memory): void {
  const goals = GOALS[kind];
  const most = (of: (noticed: Noticed) => number): number => Math.max(...all.map(of));
  const rest = `MiB above calm ${REST_MS / 1000} s after the last attack`;
  const figures: readonly (readonly [string, number, number])[] = [
    ['refused or failed requests', most(({ failed }) => failed.length), 0],
    ['p99 in ms beside the worst attack', most(({ p99 }) => p99), goals.p99],
    ['p99 of /healthz in ms', most(({ healthP99 }) => healthP99), goals.healthP99],
    ['MiB above calm', most(({ mostMiB }) => mostMiB - calmMiB), goals.moreMiB],
    [rest, restMiB - calmMiB, goals.moreMiB],
  ];
  const notes = figures.map(([label, value, atMost]) => verdictOf(`${kind}: ${label}`, value, atMost));
  record({
    bench: 'fairness',
    title: `${kind}: an ordinary member beside each attack`,
    unit: 'ms',
    kind: 'bars',
    labels: ATTACKS.map(({ name }) => name),
    series: [
      { name: 'p99', values: all.map(({ p99 }) => Math.round(p99)) },
      { name: 'p99 of /healthz', values: all.map(({ healthP99 }) => Math.round(healthP99)) },
    ],
    notes,
  });
}

function verdictOf(label: string, value: number, atMost: number): string {
  const isHeld = value <= atMost;
  if (!isHeld) process.exitCode = 1;
  const line = `${isHeld ? 'held  ' : 'MISSED'} ${label}: ${value.toFixed(0)} (at most ${atMost})`;
  console.log(`  ${line}`);
  return line;
}

const bench: Bench = {
  name: 'fairness',
  question: 'what does an ordinary member notice of one who attacks?',
  run,
};
export default bench;
