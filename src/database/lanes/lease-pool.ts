/** Connections that one statement or one transaction at a time has for itself, and the queue for them. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { QueueFull, StoreError } from '../contract.ts';
import { abandonConnection, bytesReadOf, CellClient, destroyConnection } from '../pg-internals.ts';
import { toStoreError } from '../to-store-error.ts';
import type { Lease } from '../transaction.ts';
import { MAX_WAIT_MS, QueueEstimate } from './queue-estimate.ts';
import type { Plan, SessionSettings } from './session-settings.ts';
import type { Statements } from './statements.ts';

/** Milliseconds without an answer after which the server is asked whether it is at work on the statement. */
const SUSPECT_MS = 2_000;

export interface LeasePoolOptions {
  readonly config: pg.ClientConfig;
  readonly size: number;
  /** Callers that may wait for a connection, and the milliseconds for which they may. */
  readonly mostWaiting?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly statements: Statements;
  readonly settings: SessionSettings;
  /** Returns false if no process of the server works for the connection any more: a lost host, a cut flow. */
  readonly isAtWork?: ((client: pg.ClientBase) => Promise<boolean>) | undefined;
}

export interface PooledLease extends Lease {
  /** The connection, which the next lease may have again. */
  readonly client: pg.ClientBase;
}

export interface LeaseNeeds {
  /** Milliseconds without an answer after which a statement is given up, and the server cancels it. */
  readonly silenceMs?: number | undefined;
  /** Milliseconds after which the connection of a statement is destroyed. */
  readonly deadlineMs?: number | undefined;
  /** Milliseconds to wait for a connection at most. */
  readonly waitMs?: number | undefined;
  readonly plan?: Plan;
}

export class LeasePool {
  readonly #pool: pg.Pool;
  readonly #options: LeasePoolOptions;
  readonly #estimate: QueueEstimate;

  constructor(options: LeasePoolOptions) {
    const { config, size, mostWaiting, maxWaitMs = MAX_WAIT_MS } = options;
    this.#options = options;
    this.#pool = new pg.Pool({
      ...config,
      pipeline: true,
      Client: CellClient,
      max: size,
      idleTimeoutMillis: 30_000,
      connectionTimeoutMillis: maxWaitMs,
    });
    this.#estimate = new QueueEstimate(size, mostWaiting, maxWaitMs);
    // The pool replaces an idle connection that breaks at the next use. A connection that breaks in use fails the
    // statement under way or the next; without a listener, its event would end the process.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Throws QueueFull where the wait is too long. */
  async lease({ waitMs = MAX_WAIT_MS, plan, ...limits }: LeaseNeeds = {}): Promise<PooledLease> {
    const { settings, statements } = this.#options;
    this.#estimate.admit(this.#pool.waitingCount);
    const client = await this.#connect(waitMs);
    const since = performance.now();
    settings.setPlan(client, plan);
    return {
      client,
      command: (text) => this.#watched(client, client.query(text), limits),
      send: (statement) => this.#watched(client, statements.send(client, statement), limits),
      sendTogether: (all) => this.#watched(client, statements.sendTogether(client, all), limits),
      release: (destroy) => {
        this.#estimate.note(performance.now() - since);
        client.release(destroy);
      },
    };
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  /** A connection that comes too late goes back. */
  async #connect(waitMs: number): Promise<pg.PoolClient> {
    const wasWaiting = this.#pool.waitingCount > 0 || this.#pool.totalCount >= this.#pool.options.max;
    const connecting = this.#pool.connect();
    if (!wasWaiting || waitMs >= MAX_WAIT_MS) return connecting.catch((error) => this.#refuse(error, wasWaiting));
    const ended = new AbortController();
    const late = sleep(waitMs, undefined, { signal: ended.signal }).then(() => {
      connecting.then(
        (client) => client.release(),
        () => undefined,
      );
      throw new QueueFull(this.#estimate.waitOf(this.#pool.waitingCount));
    });
    late.catch(() => undefined);
    try {
      return await Promise.race([connecting.catch((error) => this.#refuse(error, wasWaiting)), late]);
    } finally {
      ended.abort();
    }
  }

  #refuse(error: unknown, wasWaiting: boolean): never {
    const mapped = toStoreError(error);
    if (!wasWaiting || !(mapped instanceof StoreError)) throw mapped;
    throw new QueueFull(Math.max(MAX_WAIT_MS, this.#estimate.waitOf(this.#pool.waitingCount)));
  }

  /** A statement whose connection is given up fails with the loss of it. */
  async #watched<T>(
    client: pg.ClientBase,
    answer: Promise<T>,
    { silenceMs, deadlineMs = Number.POSITIVE_INFINITY }: LeaseNeeds,
  ): Promise<T> {
    const { isAtWork = async () => true } = this.#options;
    const deadline = performance.now() + deadlineMs;
    let isAnswered = false;
    let bytesRead = bytesReadOf(client);
    const look = async (): Promise<void> => {
      if (isAnswered) return;
      const isSilent = bytesReadOf(client) === bytesRead;
      bytesRead = bytesReadOf(client);
      if (performance.now() >= deadline) destroyConnection(client);
      else if (!isSilent) wait(silenceMs ?? SUSPECT_MS);
      else if (silenceMs !== undefined) abandonConnection(client);
      else {
        const isWorking = await isAtWork(client);
        if (isAnswered) return;
        if (isWorking) wait(SUSPECT_MS);
        else destroyConnection(client);
      }
    };
    // Timers run before sockets are read, so a look after a stall of the program first lets it read the answers.
    let timer: NodeJS.Timeout;
    const wait = (ms: number): void => {
      timer = setTimeout(() => setImmediate(() => void look()), Math.min(ms, deadline - performance.now()));
    };
    wait(silenceMs ?? SUSPECT_MS);
    try {
      return await answer;
    } finally {
      isAnswered = true;
      clearTimeout(timer!);
    }
  }
}
