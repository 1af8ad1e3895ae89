/**
 * Attributes the processor time and the allocations of a request to layers: profiles of the service
 * alone under the same load as in the races.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Bench, BenchOptions } from './support/bench.ts';
import { DocumentsWorld } from './support/documents-world.ts';
import { record } from './support/figures.ts';
import { allocationsOf, type LayerBytes, type LayerTime, layersOf } from './support/layers.ts';
import { type LoadResult, load } from './support/load.ts';
import { byId, create, ownOrPublished, patch } from './support/race/courses.ts';
import type { Course } from './support/race/race.ts';

const CONNECTIONS = 64;
const WARM_UP_SECONDS = 2;

async function run({ seconds }: BenchOptions): Promise<void> {
  for (const course of [ownOrPublished, byId, create, patch]) {
    const round = { course, seconds };
    report(course, await profile('time', layersOf, round));
    reportAllocations(course, await profile('allocations', allocationsOf, round));
  }
}

interface Profiled<L> {
  readonly requests: number;
  readonly layers: readonly L[];
}

const WINDOW = fileURLToPath(new URL('support/profile-window.ts', import.meta.url));

/** The profile of the load alone, without the start and the end of the service. */
async function profile<L>(
  of: 'time' | 'allocations',
  read: (file: string) => readonly L[],
  round: Round,
): Promise<Profiled<L>> {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-profile-'));
  const file = join(folder, 'profile.json');
  Object.assign(process.env, { PROFILE_OF: of, PROFILE_FILE: file });
  try {
    return await withService(`--import ${WINDOW}`, round.course, async ({ pid, ask }) => {
      process.kill(pid, 'SIGUSR2');
      const { requestsPerSecond, seconds } = await ask(round.seconds);
      process.kill(pid, 'SIGUSR2');
      while (!existsSync(file)) await sleep(50);
      return { requests: requestsPerSecond * seconds, layers: read(file) };
    });
  } finally {
    delete process.env.PROFILE_OF;
    delete process.env.PROFILE_FILE;
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Round {
  readonly course: Course;
  readonly seconds: number;
}

interface Service {
  readonly pid: number;
  /** Sends the requests of the course for so many seconds. */
  readonly ask: (seconds: number) => Promise<LoadResult>;
}

/** A profile names its files. */
const SOURCES = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** Under Node with these options, from its sources, and warm. */
async function withService<T>(options: string, course: Course, work: (service: Service) => Promise<T>): Promise<T> {
  const before = process.env.NODE_OPTIONS;
  process.env.NODE_OPTIONS = options;
  try {
    const world = await DocumentsWorld.open({ rows: 100_000, isAlone: true, main: SOURCES });
    const { url, pid } = world.contenders[0]!;
    const headers = { authorization: `Bearer ${world.token}` };
    const ask = (seconds: number) => load({ url, request: course.request, headers, connections: CONNECTIONS, seconds });
    await ask(WARM_UP_SECONDS);
    const result = await work({ pid, ask });
    await world.close();
    return result;
  } finally {
    if (before === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = before;
  }
}

function report({ title }: Course, { requests, layers }: Profiled<LayerTime>): void {
  const all = layers.reduce((sum, { us }) => sum + us, 0);
  console.log(`\n  ${title}: ${(all / requests).toFixed(0)} µs a request`);
  for (const { layer, us } of layers)
    console.log(
      `  ${layer.padEnd(36)} ${(us / requests).toFixed(1).padStart(7)} µs ${((us / all) * 100).toFixed(1).padStart(6)} %`,
    );
  record({
    bench: 'profile',
    title: `${title}, by layer`,
    unit: 'µs',
    kind: 'bars',
    labels: layers.map(({ layer }) => layer),
    series: [
      { name: 'processor time a request', values: layers.map(({ us }) => Number((us / requests).toPrecision(3))) },
    ],
    notes: [],
  });
}

function reportAllocations({ title }: Course, { requests, layers }: Profiled<LayerBytes>): void {
  const all = layers.reduce((sum, { bytes }) => sum + bytes, 0);
  console.log(`\n  ${title}: ${(all / requests / 1_000).toFixed(1)} kB a request`);
  for (const { layer, bytes } of layers)
    console.log(
      `  ${layer.padEnd(36)} ${(bytes / requests / 1_000).toFixed(1).padStart(7)} kB ${((bytes / all) * 100).toFixed(1).padStart(6)} %`,
    );
  record({
    bench: 'profile',
    title: `${title}, allocations by layer`,
    unit: 'kB',
    kind: 'bars',
    labels: layers.map(({ layer }) => layer),
    series: [
      { name: 'a request', values: layers.map(({ bytes }) => Number((bytes / requests / 1_000).toPrecision(3))) },
    ],
    notes: [],
  });
}

const bench: Bench = { name: 'profile', question: 'where do the processor time and the memory of a request go?', run };
export default bench;
