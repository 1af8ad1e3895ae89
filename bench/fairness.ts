/** Measures what an ordinary member notices of one who attacks: refusals, waiting, memory. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ATTACKS, type Attack } from './crowd/attacks.ts';
import { type Asked, Member, pause } from './crowd/member.ts';
import { CrowdWorld } from './crowd/world.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { record } from './support/figures.ts';
import { residentMiB } from './support/processor-time.ts';

/** Milliseconds, and MiB above the memory of calm. */
const GOALS = {
  postgres: { p99: 500, healthP99: 100, moreMiB: 300 },
  embedded: { p99: 1_000, healthP99: 100, moreMiB: 300 },
} as const;
type Kind = keyof typeof GOALS;

const DOCUMENTS = 100_000;
/** A garbage collector gives memory back when it likes; this long after an attack it has. */
const REST_MS = 5_000;

interface Noticed {
  readonly failed: readonly Asked[];
  readonly p99: number;
  readonly healthP99: number;
  readonly mostMiB: number;
  readonly statuses: Readonly<Record<string, number>>;
}

async function run({ seconds, rows }: BenchOptions): Promise<void> {
  for (const kind of ['postgres', 'embedded'] as const) await attackAll(kind, seconds, Math.min(rows, DOCUMENTS));
}

async function attackAll(kind: Kind, seconds: number, documents: number): Promise<void> {
  const world = await CrowdWorld.open({ kind, documents });
  console.log(`\n  ${kind}: an ordinary member beside one who attacks, ${documents} documents`);
  try {
    const calm = await measured(world, seconds);
    print('nobody attacks', calm, 0);
    const calmMiB = residentMiB(world.pid);
    const all: Noticed[] = [];
    for (const attack of ATTACKS) {
      const noticed = await measured(world, seconds, attack);
      all.push(noticed);
      print(attack.name, noticed, calmMiB);
      if (!world.isRunning) throw new Error(`${attack.name} has ended the service`);
    }
    await pause(REST_MS);
    judge(kind, all, { calmMiB, restMiB: residentMiB(world.pid) });
  } finally {
    await world.close();
  }
}

async function measured(world: CrowdWorld, seconds: number, attack?: Attack): Promise<Noticed> {
  const prepared = await attack?.prepare(world.url, world.attacker);
  const member = new Member(world.url, world.member);
  const memory = new MemoryWatch(world.pid);
  const order = attack && {
    url: world.url,
    token: world.attacker.token,
    loops: attack.loops,
    isBurst: attack.isBurst ?? false,
    seconds,
    prepared,
  };
  const [statuses] = await Promise.all([order === undefined ? {} : attacked(order), pause(seconds * 1000)]);
  const asked = await member.stop();
  const of = (isHealth: boolean) => asked.filter(({ kind }) => (kind === 'healthz') === isHealth);
  return {
    failed: asked.filter(({ status }) => status !== 200),
    p99: p99Of(of(false)),
    healthP99: p99Of(of(true)),
    mostMiB: memory.stop(),
    statuses,
  };
}

function attacked(order: object): Promise<Readonly<Record<string, number>>> {
  const file = fileURLToPath(new URL('./crowd/attacker.ts', import.meta.url));
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(order));
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', () => resolve(text === '' ? {} : JSON.parse(text)));
  });
}

class MemoryWatch {
  readonly #timer: NodeJS.Timeout;
  #most = 0;
  constructor(pid: number) {
    this.#timer = setInterval(() => {
      this.#most = Math.max(this.#most, residentMiB(pid));
    }, 200);
  }
  stop(): number {
    clearInterval(this.#timer);
    return this.#most;
  }
}

function p99Of(asked: readonly Asked[]): number {
  const ms = asked.map((one) => one.ms).sort((a, b) => a - b);
  return ms[Math.min(ms.length - 1, Math.floor(ms.length * 0.99))] ?? Number.NaN;
}

function print(name: string, { failed, p99, healthP99, mostMiB, statuses }: Noticed, calmMiB: number): void {
  const refused = failed.map(({ kind, status }) => `${kind} ${status === 0 ? 'without an answer' : status}`);
  const counts = new Map<string, number>();
  for (const one of refused) counts.set(one, (counts.get(one) ?? 0) + 1);
  const what = [...counts].map(([one, count]) => `${count} × ${one}`).join(', ');
  const answers = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `  ${name.padEnd(42)} p99 ${p99.toFixed(0).padStart(6)} ms  healthz ${healthP99.toFixed(0).padStart(5)} ms` +
      `  ${`+${Math.max(0, mostMiB - calmMiB).toFixed(0)}`.padStart(5)} MiB  refused: ${what || 'none'}   [${answers.join(', ')}]`,
  );
}

function judge(
  kind: Kind,
  all: readonly Noticed[],
  { calmMiB, restMiB }: { readonly calmMiB: number; readonly restMiB: number },
): void {
  const goals = GOALS[kind];
  const most = (of: (noticed: Noticed) => number) => Math.max(...all.map(of));
  const notes = [
    verdictOf(
      `${kind}: refused or failed requests`,
      most(({ failed }) => failed.length),
      0,
    ),
    verdictOf(
      `${kind}: p99 in ms beside the worst attack`,
      most(({ p99 }) => p99),
      goals.p99,
    ),
    verdictOf(
      `${kind}: p99 of /healthz in ms`,
      most(({ healthP99 }) => healthP99),
      goals.healthP99,
    ),
    verdictOf(
      `${kind}: MiB above calm`,
      most(({ mostMiB }) => mostMiB - calmMiB),
      goals.moreMiB,
    ),
    verdictOf(`${kind}: MiB above calm ${REST_MS / 1000} s after the last attack`, restMiB - calmMiB, goals.moreMiB),
  ];
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
