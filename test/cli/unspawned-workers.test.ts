// @module-tag long
/** Workers whose process cannot be created, because the working folder does not exist. */
import cluster, { type ClusterSettings } from 'node:cluster';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { serveWithWorkers } from '../../src/cli/server/workers/workers.ts';
import { type Config, readConfig } from '../../src/config.ts';
import { until } from '../support/until.ts';

/** The worker is ready immediately, and ends on request. */
const WORKER = `
process.on('message', ({ type }) => type === 'bylaw:stop' && process.exit(0));
process.send({ type: 'bylaw:ready', url: 'http://127.0.0.1:1' });
`;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

let folder: string;
let config: Config;
let out: string;
let errors: string;
let before: ReadonlySet<unknown>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bylaw-workers-'));
  await writeFile(join(folder, 'worker.mjs'), WORKER);
  config = { ...readConfig({}, {}), workers: 1 };
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(() => {
  [out, errors] = ['', ''];
  before = new Set(SIGNALS.flatMap((name) => process.listeners(name)));
});
/** The listeners of the primary; the test runner has others in this process. */
const signalListeners = () =>
  SIGNALS.flatMap((name) => process.listeners(name).map((listener) => ({ name, listener }))).filter(
    ({ listener }) => !before.has(listener),
  );
afterEach(() => {
  for (const { name, listener } of signalListeners()) process.off(name, listener);
});

const startIn = (cwd: string): void =>
  cluster.setupPrimary({ exec: join(folder, 'worker.mjs'), args: [], execArgv: [], cwd } as ClusterSettings);
const serve = (): Promise<number> =>
  serveWithWorkers(config, {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (errors += text) },
    stdin: Readable.from([]),
    env: {},
    cwd: folder,
  });

test('a failure of the first worker ends the primary with the reason', async () => {
  startIn(join(folder, 'missing'));
  expect(await serve()).toBe(1);
  expect([out, errors]).toEqual(['', expect.stringMatching(/^bylaw serve: no process .* worker: spawn .* ENOENT\n$/)]);
});

test('a later worker is started again', async () => {
  startIn(folder);
  const ended = serve();
  await until('it is ready', async () => out.includes('listening'));
  startIn(join(folder, 'missing'));
  const [worker] = Object.values(cluster.workers ?? {});
  worker!.process.kill('SIGKILL');
  await until('the next cannot be started', async () => errors.includes('ENOENT'));
  startIn(folder);
  const ready = new Promise((resolve) => cluster.once('online', resolve));
  expect(errors.split('\n').map((line) => line.replace(/: spawn .*/, ''))).toEqual([
    'bylaw serve: a worker exited (SIGKILL); another starts in 500 ms',
    'bylaw serve: no process can be started for a worker',
    'bylaw serve: a worker exited (exit code 1); another starts in 1000 ms',
    '',
  ]);
  await ready;
  signalListeners()[0]!.listener('SIGTERM');
  expect(await ended).toBe(0);
});
