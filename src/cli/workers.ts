/**
 * Several processes behind one port. The primary brings the database to the schema, starts the
 * workers, and replaces a worker that exits unexpectedly; the workers share nothing but the
 * database.
 */
import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, type RegistryContentType } from 'prom-client';
import type { Config } from '../config.ts';
import type { Schema } from '../schema/model.ts';
import { applyMigration } from '../store/migrations/migration.ts';
import type { Io } from './command.ts';
import { systemTables } from './system-tables.ts';
import { openDatabaseOf } from './workspace.ts';

export interface Fleet {
  readonly config: Config;
  readonly schema: Schema;
  readonly io: Io;
  readonly ready: (url: string, config: Config) => string;
}

interface WorkerMessage {
  readonly type: string;
  readonly id?: number;
  readonly text?: string;
  readonly url?: string;
}
const READY = 'bylaw:ready';
const METRICS = 'bylaw:metrics';

/** A worker that exits sooner after its start is not replaced: its replacement would fail, too. */
const HEALTHY_MS = 5_000;

/** Returns after a signal. */
export async function serveWithWorkers({ config, schema, io, ready }: Fleet): Promise<number> {
  const db = await openDatabaseOf(config, io.cwd);
  await applyMigration(db, schema, { systemTables }).finally(() => db.close());
  const registry = new AggregatorRegistry();
  let isStopping = false;
  let waiting = config.workers;
  const ended = Promise.withResolvers<number>();

  const start = (): void => {
    const worker = cluster.fork();
    const began = Date.now();
    worker.on('message', (message: WorkerMessage) => {
      if (message.type === METRICS) void sendMetrics(worker, registry, message.id ?? 0);
      if (message.type === READY && --waiting === 0)
        io.stdout.write(`${ready(message.url ?? config.baseUrl, config)}\n`);
    });
    worker.once('exit', (code) => {
      if (isStopping) return;
      if (Date.now() - began > HEALTHY_MS) return start();
      io.stderr.write(`bylaw serve: a worker exited at its start (exit code ${code})\n`);
      stop(1);
    });
  };
  const stop = (code: number): void => {
    if (isStopping) return;
    isStopping = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    void Promise.all(workers.map(exitOf)).then(() => ended.resolve(code));
    for (const worker of workers) worker.process.kill('SIGTERM');
  };
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => stop(0));
  for (let i = 0; i < config.workers; i++) start();
  return ended.promise;
}

const exitOf = (worker: Worker): Promise<void> =>
  new Promise((resolve) => (worker.isDead() ? resolve() : worker.once('exit', () => resolve())));

async function sendMetrics(
  worker: Worker,
  registry: AggregatorRegistry<RegistryContentType>,
  id: number,
): Promise<void> {
  const text = await registry.clusterMetrics().catch(() => '');
  if (worker.isConnected()) worker.send({ type: METRICS, id, text } satisfies WorkerMessage);
}

// ---------------------------------------------------------------- in a worker

export function notifyReady(url: string): void {
  process.send?.({ type: READY, url } satisfies WorkerMessage);
}

/** Numbers the requests of this process to the primary. */
let lastRequest = 0;

/** The metrics of all workers, collected by the primary. */
export function readMetricsOfAll(): Promise<string> {
  const id = ++lastRequest;
  return new Promise((resolve) => {
    const onMessage = (message: WorkerMessage): void => {
      if (message.type !== METRICS || message.id !== id) return;
      process.off('message', onMessage);
      resolve(message.text ?? '');
    };
    process.on('message', onMessage);
    process.send?.({ type: METRICS, id } satisfies WorkerMessage);
  });
}
