/** What an ordinary member notices of an attack: refusals, waiting, and the memory of the service. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { residentMiB } from '../support/processor-time.ts';
import type { Attack } from './attacks.ts';
import { type Asked, Member, pause } from './member.ts';
import type { CrowdKind, CrowdWorld } from './world.ts';

export interface Goals {
  /** Milliseconds. */
  readonly p99: number;
  readonly healthP99: number;
  /** Above the memory of calm. */
  readonly moreMiB: number;
}
export const GOALS: Readonly<Record<CrowdKind, Goals>> = {
  postgres: { p99: 500, healthP99: 100, moreMiB: 300 },
  embedded: { p99: 1_000, healthP99: 100, moreMiB: 300 },
};

export interface Noticed {
  readonly failed: readonly Asked[];
  readonly p99: number;
  readonly healthP99: number;
  /** Memory at the worst, and after the attack. */
  readonly mostMiB: number;
  readonly afterMiB: number;
  /** The answers to the attacker, by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Runs the ordinary member for some seconds, beside the attack if one is given. */
export async function noticedBeside(world: CrowdWorld, seconds: number, attack?: Attack): Promise<Noticed> {
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
  if (!world.isRunning) throw new Error(`${attack?.name ?? 'an ordinary member'} has ended the service`);
  const timesOf = (isHealth: boolean) => asked.filter(({ kind }) => (kind === 'healthz') === isHealth);
  return {
    failed: asked.filter(({ status }) => status !== 200),
    p99: p99Of(timesOf(false)),
    healthP99: p99Of(timesOf(true)),
    mostMiB: memory.stop(),
    afterMiB: residentMiB(world.pid),
    statuses,
  };
}

function attacked(order: object): Promise<Readonly<Record<string, number>>> {
  const file = fileURLToPath(new URL('./attacker.ts', import.meta.url));
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

/** `3 × create 503, 1 × read without an answer`; `none`. */
export function refusalsOf({ failed }: Noticed): string {
  const counts = new Map<string, number>();
  for (const { kind, status } of failed) {
    const refused = `${kind} ${status === 0 ? 'without an answer' : status}`;
    counts.set(refused, (counts.get(refused) ?? 0) + 1);
  }
  return [...counts].map(([refused, count]) => `${count} × ${refused}`).join(', ') || 'none';
}
