/**
 * Several processes behind one port. The primary starts the workers, and replaces one that exits
 * unexpectedly; they share nothing but the database. The first worker brings that to the schema
 * before the others start.
 *
 * INVARIANT: nothing of the service is loaded here: the primary would hold its memory for nothing.
 */
import cluster, { type Worker } from 'node:cluster';
import type { AggregatorRegistry, RegistryContentType } from 'prom-client';
import type { Config } from '../../../config.ts';
import type { Io } from '../../support/command.ts';
import { readyLine } from '../ready-line.ts';
import { stopSignal } from '../stop-signal.ts';
import { returnHandovers } from './handovers.ts';
import { LISTENING, METRICS, READY, STOP, type WorkerMessage } from './worker.ts';

/** Milliseconds. A worker that lived this long is replaced at once. */
const HEALTHY_MS = 5_000;
const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 30_000;

/** Returns after a signal, or with the exit code of a first worker that cannot start. */
export const serveWithWorkers = (config: Config, io: Io): Promise<number> => new Primary(config, io).run();

class Primary {
  readonly #config: Config;
  readonly #io: Io;
  readonly #ended = Promise.withResolvers<number>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  #registry: Promise<AggregatorRegistry<RegistryContentType>> | undefined;
  /** Ids of workers. */
  readonly #ready = new Set<number>();
  /** The first worker was ready once. */
  #hasStarted = false;
  #isAnnounced = false;
  #isStopping = false;
  #pause = FIRST_PAUSE_MS;

  constructor(config: Config, io: Io) {
    this.#config = config;
    this.#io = io;
  }

  run(): Promise<number> {
    void stopSignal().then(() => this.#stop(0));
    this.#start();
    return this.#ended.promise;
  }

  #start(): void {
    const worker = cluster.fork();
    if (worker.process.pid !== undefined) returnHandovers(worker, () => !this.#isStopping && this.#ready.size > 0);
    const began = performance.now();
    worker.on('message', (message: WorkerMessage) => {
      if (message.type === METRICS) void this.#sendMetrics(worker, message.id ?? 0);
      if (message.type === READY) this.#onReady(worker, message);
      if (message.type === LISTENING && this.#isStopping) stop(worker);
    });
    worker.on('error', (error) => {
      // What is sent to a worker that has just died fails, and would end the primary; its exit is reported.
      if (worker.process.pid !== undefined || this.#isStopping) return;
      // The system made no process, of which no exit is reported either.
      this.#io.stderr.write(`bylaw serve: no process can be started for a worker: ${error.message}\n`);
      this.#onExit({ code: 1, signal: null, lived: 0 });
    });
    worker.once('exit', (code, signal) => {
      this.#ready.delete(worker.id);
      if (this.#isStopping) return;
      this.#onExit({ code, signal, lived: performance.now() - began });
    });
  }

  #onReady(worker: Worker, { url }: WorkerMessage): void {
    const { workers, baseUrl } = this.#config;
    if (!this.#hasStarted) for (let i = 1; i < workers; i++) this.#start();
    this.#hasStarted = true;
    this.#ready.add(worker.id);
    if (this.#ready.size < workers || this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#io.stdout.write(`${readyLine(url ?? baseUrl, this.#config)}\n`);
  }

  #onExit({ code, signal, lived }: WorkerExit): void {
    // The first has reported what keeps it, and would keep every other, from starting.
    if (!this.#hasStarted && signal === null) {
      this.#stop(code);
      return;
    }
    const reason = signal ?? `exit code ${code}`;
    const isHealthy = lived > HEALTHY_MS;
    const pause = isHealthy ? 0 : this.#pause;
    this.#pause = isHealthy ? FIRST_PAUSE_MS : Math.min(pause * 2, LAST_PAUSE_MS);
    this.#io.stderr.write(`bylaw serve: a worker exited (${reason}); another starts in ${pause} ms\n`);
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
    for (const worker of workers) stop(worker);
  }

  /** Loaded with the first request for metrics: nothing else here needs the package. */
  async #sendMetrics(worker: Worker, id: number): Promise<void> {
    this.#registry ??= import('prom-client').then((prometheus) => new prometheus.AggregatorRegistry());
    const registry = await this.#registry;
    const text = await registry.clusterMetrics().catch(() => '');
    if (worker.isConnected()) worker.send({ type: METRICS, id, text } satisfies WorkerMessage);
  }
}

interface WorkerExit {
  readonly code: number;
  readonly signal: string | null;
  /** Milliseconds. */
  readonly lived: number;
}

function stop(worker: Worker): void {
  if (worker.isConnected()) worker.send({ type: STOP } satisfies WorkerMessage);
}

const exitOf = (worker: Worker): Promise<void> =>
  new Promise((resolve) => (worker.isDead() ? resolve() : worker.once('exit', () => resolve())));
