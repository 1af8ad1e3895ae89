/** From `bylaw serve` to the line that says it is ready, on PostgreSQL with local files, as it is published: compiled. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import type { Bench } from './support/bench.ts';
import { verdict } from './support/measure.ts';

const BUILT = fileURLToPath(new URL('../dist/src/main.js', import.meta.url));
const ROUNDS = 9;
const SCHEMA = 'collections: { notes: { fields: { text: string }, access: { list: true } } }\n';

async function run(): Promise<void> {
  if (!existsSync(BUILT)) throw new Error('run `npm run build` first');
  const postgres = await startPostgres();
  if (postgres === undefined) throw new Error('it needs PostgreSQL');
  const folder = await mkdtemp(join(tmpdir(), 'bylaw-start-'));
  try {
    await writeFile(join(folder, 'bylaw.yaml'), SCHEMA);
    const url = await isolatedUrl(postgres.url);
    const args = ['--schema', join(folder, 'bylaw.yaml'), '--data', folder, '--database-url', url, '--port', '0'];
    // The first makes the tables, and reads the disk.
    await start(args, {});
    const cache = { NODE_COMPILE_CACHE: join(folder, 'compiled') };
    await start(args, cache);
    const plain = await medianOf(() => start(args, {}));
    const cached = await medianOf(() => start(args, cache));
    console.log(`with NODE_COMPILE_CACHE ${cached.toFixed(0)} ms`);
    verdict('start', plain, { limit: 1_000, unit: 'ms' });
  } finally {
    await rm(folder, { recursive: true, force: true });
    await postgres.stop();
  }
}

async function medianOf(measure: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < ROUNDS; i++) times.push(await measure());
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]!;
}

/** Milliseconds until it says that it listens. */
async function start(args: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const began = performance.now();
  const child = spawn(process.execPath, [BUILT, 'serve', ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await Promise.race([
    new Promise((resolve) => child.stdout.once('data', resolve)),
    ended.then(() => Promise.reject(new Error('the service ended'))),
  ]);
  const took = performance.now() - began;
  child.kill('SIGTERM');
  await ended;
  return took;
}

const bench: Bench = { name: 'start', question: 'how long until the service listens?', run };
export default bench;
