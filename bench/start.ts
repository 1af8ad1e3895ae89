/** From `bylaw serve` to the line that says it is ready, on PostgreSQL with local files, as it is published: compiled. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import type { Bench } from './support/bench.ts';
import { builtMain } from './support/built.ts';
import { record } from './support/figures.ts';
import { median, verdict } from './support/measure.ts';
import { residentMiB } from './support/processor-time.ts';

const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const ROUNDS = 9;
const SCHEMA = 'collections: { notes: { fields: { text: string }, access: { list: true } } }\n';

interface Started {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

async function run(): Promise<void> {
  const main = builtMain();
  const postgres = await startPostgres();
  if (postgres === undefined) throw new Error('it needs PostgreSQL');
  const folder = await mkdtemp(join(tmpdir(), 'bylaw-start-'));
  try {
    await writeFile(join(folder, 'bylaw.yaml'), SCHEMA);
    const url = await isolatedUrl(postgres.url);
    const flags = ['--schema', join(folder, 'bylaw.yaml'), '--data', folder, '--database-url', url, '--port', '0'];
    const byHand = [url, 'token', '00000000-0000-4000-8000-000000000000'];
    const serve = [main, 'serve', ...flags];
    await compare([
      { name: 'bylaw', args: serve },
      { name: 'bylaw with a compile cache', args: serve, env: { NODE_COMPILE_CACHE: join(folder, 'compiled') } },
      { name: 'bylaw with two workers', args: [...serve, '--workers', '2'] },
      { name: 'usual', args: [fileOf('./servers/handwritten.ts'), ...byHand] },
      { name: 'best', args: [fileOf('./servers/best.ts'), ...byHand] },
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
    await postgres.stop();
  }
}

interface Start {
  readonly ms: number;
  readonly mib: number;
}

async function compare(servers: readonly Started[]): Promise<void> {
  const starts = servers.map((): Start[] => []);
  // The first makes the tables, and reads the disk.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [i, server] of servers.entries()) {
      const started = await start(server);
      if (round > 0) starts[i]!.push(started);
    }
  }
  const of = (key: keyof Start) => starts.map((all) => Math.round(median(all.map((each) => each[key]))));
  const [ms, mib] = [of('ms'), of('mib')];
  for (const [i, { name }] of servers.entries())
    console.log(`  ${name.padEnd(28)} ${ms[i]} ms   ${mib[i]} MiB resident a second later`);
  const bars = { bench: 'start', kind: 'bars', labels: servers.map(({ name }) => name), notes: [] } as const;
  record({ ...bars, title: 'from the start to the first answer', unit: 'ms', series: [{ name: 'start', values: ms }] });
  record({ ...bars, title: 'memory after the start', unit: 'MiB', series: [{ name: 'resident', values: mib }] });
  verdict('start', ms[0]!, { limit: 600, unit: 'ms' });
}

/** Until it says that it listens. */
async function start({ args, env }: Started): Promise<Start> {
  const began = performance.now();
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await Promise.race([said(child), ended.then(() => Promise.reject(new Error('the server ended')))]);
  const ms = performance.now() - began;
  await sleep(1_000);
  const mib = residentMiB(child.pid!);
  child.kill('SIGTERM');
  await ended;
  return { ms, mib };
}

const said = (child: ChildProcess): Promise<unknown> => new Promise((resolve) => child.stdout!.once('data', resolve));

const bench: Bench = { name: 'start', question: 'how long until the service listens, and in what memory?', run };
export default bench;
