/**
 * Several processes behind one port. The primary starts the workers, and replaces a worker that exits
 * unexpectedly; they share only the database, which the first worker migrates before the others
 * start.
 *
 * INVARIANT: the primary loads no part of the service, whose memory it would not need.
 */
import cluster, { type Worker } from 'node:cluster';
import type { AggregatorRegistry, RegistryContentType } from 'prom-client';
import { newSecret } from '../../../auth/sessions/secrets.ts';
import { StreamCounts } from '../../../changes/stream-places.ts';
import type { Config } from '../../../config.ts';
import type { Io } from '../../support/command.ts';
import { readyLine, setupLine, stopSignal } from '../server-process.ts';
import { returnHandovers } from './handovers.ts';
import { LISTENING, METRICS, READY, SETUP, STOP, STREAMS, type WorkerMessage } from './worker.ts';

/** Milliseconds. A worker that lived this long is replaced immediately. */
const HEALTHY_MS = 5_000;
const FIRST_RESTART_PAUSE_MS = 500;
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
  /** A worker that replaces another gets the same. */
  readonly #setup = { text: newSecret(), startedAt: Date.now() };
  /** The streams of all workers. */
  readonly #streams = new StreamCounts();
  #pause = FIRST_RESTART_PAUSE_MS;

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
    const own = new StreamCounts();
    worker.on('message', (message: WorkerMessage) => {
      if (message.type === METRICS) void this.#sendMetrics(worker, message.id ?? 0);
      if (message.type === STREAMS) this.#countStreams(worker, own, message);
      if (message.type === READY) this.#onReady(worker, message);
      if (message.type === LISTENING) this.#onListening(worker);
    });
    worker.on('error', (error) => {
      // A message to a worker that has just died fails, and would end the primary; its exit is reported anyway.
      if (worker.process.pid !== undefined || this.#isStopping) return;
      // The system created no process, so no exit will be reported.
      this.#io.stderr.write(`bylaw serve: no process can be started for a worker: ${error.message}\n`);
      this.#onExit(1, null, 0);
    });
    worker.once('exit', (code, signal) => {
      this.#ready.delete(worker.id);
      this.#streams.subtract(own);
      if (this.#isStopping) return;
      this.#onExit(code, signal, performance.now() - began);
    });
  }

  #onListening(worker: Worker): void {
    if (this.#isStopping) stop(worker);
    else send(worker, { type: SETUP, ...this.#setup });
  }

  /** @param own the streams of the worker */
  #countStreams(worker: Worker, own: StreamCounts, { id, share = '', count = 0, bounds }: WorkerMessage): void {
    const exceeded = bounds === undefined ? undefined : this.#streams.take(share, count, bounds);
    if (bounds === undefined) this.#streams.add(share, count);
    if (exceeded === undefined) own.add(share, count);
    if (id !== undefined) send(worker, { type: STREAMS, id, exceeded });
  }

  #onReady(worker: Worker, { url, needsAdmin }: WorkerMessage): void {
    const { workers, baseUrl, baseUrlGiven } = this.#config;
    if (!this.#hasStarted) for (let i = 1; i < workers; i++) this.#start();
    this.#hasStarted = true;
    this.#ready.add(worker.id);
    if (this.#ready.size < workers || this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#io.stdout.write(`${readyLine(url ?? baseUrl, this.#config)}\n`);
    const site = baseUrlGiven ? baseUrl : (url ?? baseUrl);
    if (needsAdmin === true) this.#io.stdout.write(`${setupLine(site, this.#setup.text)}\n`);
  }

  /** `lived`: milliseconds. */
  #onExit(code: number, signal: string | null, lived: number): void {
    // The first worker has reported why it cannot start; the others could not start either.
    if (!this.#hasStarted && signal === null) {
      this.#stop(code);
      return;
    }
    const reason = signal ?? `exit code ${code}`;
    const isHealthy = lived > HEALTHY_MS;
    const pause = isHealthy ? 0 : this.#pause;
    this.#pause = isHealthy ? FIRST_RESTART_PAUSE_MS : Math.min(pause * 2, LAST_PAUSE_MS);
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
    // A message instead of a signal: workers may already have got the signal of the group.
    for (const worker of workers) stop(worker);
  }

  /** Loaded with the first request for metrics: nothing else here needs the package. */
  async #sendMetrics(worker: Worker, id: number): Promise<void> {
    this.#registry ??= import('prom-client').then((prometheus) => new prometheus.AggregatorRegistry());
    const registry = await this.#registry;
    const text = await registry.clusterMetrics().catch(() => '');
    send(worker, { type: METRICS, id, text });
  }
}

const stop = (worker: Worker): void => send(worker, { type: STOP });

function send(worker: Worker, message: WorkerMessage): void {
  if (worker.isConnected()) worker.send(message);
}

const exitOf = (worker: Worker): Promise<void> =>
  new Promise((resolve) => (worker.isDead() ? resolve() : worker.once('exit', () => resolve())));
