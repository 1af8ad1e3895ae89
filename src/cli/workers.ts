/**
 * Several processes behind one port. The primary brings the database to the schema, starts the
 * workers, and replaces a worker that exits unexpectedly; the workers share nothing but the
 * database.
 */
import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, type RegistryContentType } from 'prom-client';
import type { Config } from '../config.ts';
import type { Schema } from '../schema/model.ts';
import { applyMigration } from '../store/migrations/apply-migration.ts';
import type { Io } from './command.ts';
import { startOptions } from './system-tables.ts';
import { openDatabaseOf } from './workspace.ts';

export interface Fleet {
  readonly config: Config;
  readonly schema: Schema;
  readonly io: Io;
  readonly ready: (url: string, config: Config) => string;
  /** Resolves with the signal that stops the service. */
  readonly stopped: Promise<void>;
}

interface WorkerMessage {
  readonly type: string;
  readonly id?: number;
  readonly text?: string;
  readonly url?: string;
}
const READY = 'bylaw:ready';
const METRICS = 'bylaw:metrics';
const STOP = 'bylaw:stop';

/** Milliseconds. A worker that lived this long is replaced at once. */
const HEALTHY_MS = 5_000;
const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 30_000;

/** Returns after a signal. */
export async function serveWithWorkers(fleet: Fleet): Promise<number> {
  const { config, schema, io } = fleet;
  const db = await openDatabaseOf(config, io.cwd);
  const onNote = (note: string): void => void io.stderr.write(`bylaw serve: ${note}\n`);
  await applyMigration(db, schema, { ...startOptions(), onNote }).finally(() => db.close());
  return new Primary(fleet).run();
}

/** Keeps as many workers as are configured. Ends by itself only if no worker can start. */
class Primary {
  readonly #fleet: Fleet;
  readonly #registry = new AggregatorRegistry();
  readonly #ended = Promise.withResolvers<number>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  #waiting: number;
  #isStopping = false;
  #wasReady = false;
  #pause = FIRST_PAUSE_MS;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#waiting = fleet.config.workers;
  }

  run(): Promise<number> {
    void this.#fleet.stopped.then(() => this.#stop(0));
    for (let i = 0; i < this.#fleet.config.workers; i++) this.#start();
    return this.#ended.promise;
  }

  #start(): void {
    const worker = cluster.fork();
    const began = performance.now();
    worker.on('message', (message: WorkerMessage) => {
      if (message.type === METRICS) void sendMetrics(worker, this.#registry, message.id ?? 0);
      if (message.type === READY) this.#onReady(message);
    });
    worker.once('exit', (code, signal) => {
      if (this.#isStopping) return;
      this.#onExit(signal === null ? `exit code ${code}` : signal, performance.now() - began);
    });
  }

  #onReady({ url }: WorkerMessage): void {
    this.#wasReady = true;
    this.#waiting--;
    if (this.#waiting !== 0) return;
    const { config, io, ready } = this.#fleet;
    io.stdout.write(`${ready(url ?? config.baseUrl, config)}\n`);
  }

  #onExit(reason: string, lived: number): void {
    const { stderr } = this.#fleet.io;
    // Killed from outside, or stopped by an error: only an error is likely to recur.
    if (!this.#wasReady && reason.startsWith('exit')) {
      stderr.write(`bylaw serve: a worker exited at its start (${reason})\n`);
      this.#stop(1);
      return;
    }
    const isHealthy = lived > HEALTHY_MS;
    const pause = isHealthy ? 0 : this.#pause;
    this.#pause = isHealthy ? FIRST_PAUSE_MS : Math.min(pause * 2, LAST_PAUSE_MS);
    stderr.write(`bylaw serve: a worker exited (${reason}); another starts in ${pause} ms\n`);
    const restart = setTimeout(() => {
      this.#restarts.delete(restart);
      this.#start();
    }, pause);
    this.#restarts.add(restart);
  }

  #stop(code: number): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    for (const restart of this.#restarts) clearTimeout(restart);
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    void Promise.all(workers.map(exitOf)).then(() => this.#ended.resolve(code));
    // Not by a signal: one that the whole group got would be the second.
    for (const worker of workers) if (worker.isConnected()) worker.send({ type: STOP } satisfies WorkerMessage);
  }
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

/**
 * Resolves when the primary asks this worker to stop. Signals are for the primary: a whole group
 * gets them.
 */
export function stopMessage(): Promise<void> {
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => undefined);
  return new Promise((resolve) => {
    process.on('message', (message: WorkerMessage) => {
      if (message.type === STOP) resolve();
    });
  });
}

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
