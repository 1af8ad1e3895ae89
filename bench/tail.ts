/**
 * Measures the slowest lists: the same list at several loads, with the pauses of the event loop of
 * the service.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bench, BenchOptions } from './support/bench.ts';
import { DocumentsWorld } from './support/documents-world.ts';
import { load } from './support/load.ts';
import type { Pause } from './support/pauses.ts';
import { ownOrPublished } from './support/race/courses.ts';

const LOADS = [1, 4, 16, 64];
const PRELOAD = fileURLToPath(new URL('./support/pauses.ts', import.meta.url));

interface Window {
  readonly connections: number;
  readonly from: number;
  readonly seconds: number;
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
}

async function run({ seconds }: BenchOptions): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-tail-'));
  const file = join(folder, 'pauses.json');
  const { NODE_OPTIONS, BENCH_PAUSES } = process.env;
  process.env.NODE_OPTIONS = `--import ${PRELOAD}`;
  process.env.BENCH_PAUSES = file;
  try {
    const windows = await measured(seconds);
    const pauses = JSON.parse(readFileSync(file, 'utf8')) as readonly Pause[];
    for (const window of windows) report(window, pauses);
  } finally {
    restore({ NODE_OPTIONS, BENCH_PAUSES });
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measured(seconds: number): Promise<readonly Window[]> {
  const world = await DocumentsWorld.open({ rows: 100_000, isAlone: true });
  const { url } = world.contenders[0]!;
  const ask = (connections: number, duration: number) =>
    load({
      url,
      request: ownOrPublished.request,
      headers: { authorization: `Bearer ${world.token}` },
      connections,
      seconds: duration,
    });
  await ask(64, 2);
  const windows: Window[] = [];
  for (const connections of LOADS) {
    const from = Date.now();
    const { requestsPerSecond, p50, p99, seconds: took } = await ask(connections, seconds);
    windows.push({ connections, from, seconds: took, requests: requestsPerSecond * took, p50, p99 });
  }
  await world.close();
  return windows;
}

function report({ connections, from, seconds, requests, p50, p99 }: Window, all: readonly Pause[]): void {
  const rate = Math.round(requests / seconds);
  console.log(
    `  ${connections} connections: ${rate} requests/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${(p99 / p50).toFixed(1)} ×)`,
  );
  for (const kind of ['young', 'old', 'turn'] as const) {
    const pauses = all.filter((pause) => pause.kind === kind && pause.at >= from && pause.at < from + seconds * 1000);
    const ms = pauses.map((pause) => pause.ms).sort((a, b) => a - b);
    if (ms.length === 0) continue;
    const sum = ms.reduce((total, each) => total + each, 0);
    const met = Math.min(100, ((pauses.length * connections) / requests) * 100);
    console.log(
      `    ${NAMES[kind].padEnd(34)} ${(ms.length / seconds).toFixed(1).padStart(6)} a second, median ${ms[ms.length >> 1]!.toFixed(1)} ms, ` +
        `longest ${ms.at(-1)!.toFixed(1)} ms, ${((sum / seconds / 1000) * 100).toFixed(1)} % of the time; meets at most ${met.toFixed(1)} % of the requests`,
    );
  }
}

const NAMES: Readonly<Record<Pause['kind'], string>> = {
  young: 'collections of young objects',
  old: 'other collections',
  turn: 'turns of the loop over 5 ms',
};

function restore(before: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

const bench: Bench = { name: 'tail', question: 'what do the slowest lists wait for?', run };
export default bench;
