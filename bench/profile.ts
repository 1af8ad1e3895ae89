/** Where the processor time of a request goes, by layer: a profile of the service alone under the same load as in the races. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, BenchOptions } from './support/bench.ts';
import { byId, create, ownOrPublished, patch } from './support/courses.ts';
import { DocumentsWorld } from './support/documents-world.ts';
import { record } from './support/figures.ts';
import { type LayerTime, layersOf } from './support/layers.ts';
import { load } from './support/load.ts';
import type { Course } from './support/race.ts';

const CONNECTIONS = 64;
const WARM_UP_SECONDS = 2;

async function run({ seconds }: BenchOptions): Promise<void> {
  for (const course of [ownOrPublished, byId, create, patch]) report(course, await profile(course, seconds));
}

interface Profiled {
  readonly requests: number;
  readonly layers: readonly LayerTime[];
}

async function profile(course: Course, seconds: number): Promise<Profiled> {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-profile-'));
  const before = process.env.NODE_OPTIONS;
  process.env.NODE_OPTIONS = `--cpu-prof --cpu-prof-dir=${folder}`;
  try {
    const world = await DocumentsWorld.open({ rows: 100_000, isAlone: true, isSource: true });
    const { url } = world.contenders[0]!;
    const headers = { authorization: `Bearer ${world.token}` };
    const ask = (duration: number) =>
      load({ url, request: course.request, headers, connections: CONNECTIONS, seconds: duration });
    await ask(WARM_UP_SECONDS);
    const measured = await ask(seconds);
    await world.close();
    const requests = measured.requestsPerSecond * measured.seconds;
    return { requests, layers: layersOf(join(folder, profileIn(folder)), measured.seconds) };
  } finally {
    if (before === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = before;
    rmSync(folder, { recursive: true, force: true });
  }
}

const profileIn = (folder: string): string => {
  const [file] = readdirSync(folder);
  if (file === undefined) throw new Error('the service wrote no profile');
  return file;
};

function report({ title }: Course, { requests, layers }: Profiled): void {
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

const bench: Bench = { name: 'profile', question: 'where does the processor time of a request go?', run };
export default bench;
