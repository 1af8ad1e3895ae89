/** Connections that one statement or one transaction at a time has for itself. */
import pg from 'pg';
import { QueueFull, StoreError } from '../contract.ts';
import { toStoreError } from '../to-store-error.ts';
import type { Lease } from '../transaction.ts';
import { CellClient } from './cell-client.ts';
import { destroyConnection } from './pipelined-connection.ts';
import { MAX_WAIT_MS, QueueEstimate } from './queue-estimate.ts';
import type { Statements } from './statements.ts';

export interface LeasePoolOptions {
  readonly config: pg.ClientConfig;
  readonly size: number;
  readonly statements: Statements;
  /** Hears of each new connection. */
  readonly onConnect: (client: pg.PoolClient) => void;
}

export interface PooledLease extends Lease {
  /** Stands for the connection, which the next lease may have again. */
  readonly session: object;
}

interface LeaseOptions {
  /** Milliseconds after which a statement's connection is destroyed; none if it is not given. */
  readonly deadlineMs?: number | undefined;
  /** Milliseconds that are waited for a connection at most. */
  readonly waitMs?: number | undefined;
}

export class LeasePool {
  readonly #pool: pg.Pool;
  readonly #statements: Statements;
  readonly #estimate: QueueEstimate;

  constructor({ config, size, statements, onConnect }: LeasePoolOptions) {
    this.#pool = new pg.Pool({
      ...config,
      Client: CellClient,
      max: size,
      idleTimeoutMillis: 30_000,
      connectionTimeoutMillis: MAX_WAIT_MS,
    });
    this.#statements = statements;
    this.#estimate = new QueueEstimate(size);
    // An idle connection that breaks is the pool's own affair: it is replaced at the next use.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => {
      // One that breaks in use fails the statement under way or the next; unheard, its event would
      // end the process.
      client.on('error', () => undefined);
      onConnect(client);
    });
  }

  /** Whether nobody would have to wait. */
  get hasRoom(): boolean {
    const { idleCount, totalCount, waitingCount, options } = this.#pool;
    return waitingCount === 0 && (idleCount > 0 || totalCount < options.max!);
  }

  /** Throws QueueFull where the wait is too long. */
  async lease({ deadlineMs, waitMs = MAX_WAIT_MS }: LeaseOptions = {}): Promise<PooledLease> {
    this.#estimate.admit(this.#pool.waitingCount);
    const client = waitMs >= MAX_WAIT_MS || this.hasRoom ? await this.#connect() : await this.#connectWithin(waitMs);
    const since = performance.now();
    return {
      session: client,
      command: (text) => within(deadlineMs, client, client.query(text)),
      send: (statement) => within(deadlineMs, client, this.#statements.send(client, statement)),
      sendTogether: (all) => within(deadlineMs, client, this.#statements.sendTogether(client, all)),
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
  async #connectWithin(ms: number): Promise<pg.PoolClient> {
    const connecting = this.#connect();
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      reject(new QueueFull(this.#estimate.waitOf(this.#pool.waitingCount)));
      connecting.then(
        (client) => client.release(),
        () => undefined,
      );
    }, ms);
    try {
      return await Promise.race([connecting, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    const wasWaiting = this.#pool.waitingCount > 0 || this.#pool.totalCount >= (this.#pool.options.max ?? 0);
    try {
      return await this.#pool.connect();
    } catch (error) {
      const mapped = toStoreError(error);
      if (!wasWaiting || !(mapped instanceof StoreError)) throw mapped;
      throw new QueueFull(Math.max(MAX_WAIT_MS, this.#estimate.waitOf(this.#pool.waitingCount)));
    }
  }
}

/** A connection that does not answer in time is destroyed, and the statement fails with it. */
async function within<T>(deadlineMs: number | undefined, client: pg.PoolClient, work: Promise<T>): Promise<T> {
  if (deadlineMs === undefined) return work;
  const timer = setTimeout(() => destroyConnection(client), deadlineMs);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
