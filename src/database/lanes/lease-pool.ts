/** Connections that one statement or one transaction at a time has for itself, and the queue for them. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, StoreError } from '../contract.ts';
import { abandonConnection, bytesReadOf, CellClient, destroyConnection, type Outcome } from '../pg-internals.ts';
import { TIME_LIMIT_MS } from '../server-url.ts';
import { isConnectionLoss, isQueryCanceled, isStalePlan, toStoreError } from '../to-store-error.ts';
import type { Lease } from '../transaction.ts';
import { MAX_WAIT_MS, QueueEstimate } from './queue-estimate.ts';
import type { Plan, SessionSettings } from './session-settings.ts';
import type { Statements } from './statements.ts';

/** Milliseconds without an answer after which the server is asked whether it is at work on the statement. */
const SUSPECT_MS = 2_000;
/** Milliseconds beyond the server's own time limit after which the client gives up the connection. */
const GRACE_MS = 2_000;
/** The share of its time that a statement may wait; beyond, its wait was too long, and not the statement. */
const MOST_WAITED = 0.1;

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

interface PooledLease extends Lease {
  /** The connection, which the next lease may have again. */
  readonly client: pg.ClientBase;
  /** Milliseconds in the queue behind others; the time to make a connection is not among them. */
  readonly queuedMs: number;
}

export interface LeaseNeeds {
  /** Statements may take hours. */
  readonly isUnlimited?: boolean;
  /** Milliseconds without an answer after which a statement is given up, and the server cancels it. */
  readonly silenceMs?: number | undefined;
  /** Milliseconds that a statement may take, its time in the queue included; PostgreSQL cancels it then. */
  readonly limitMs?: number | undefined;
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
  async lease(needs: LeaseNeeds = {}): Promise<PooledLease> {
    const { settings, statements } = this.#options;
    this.#estimate.admit(this.#pool.waitingCount);
    const isQueued = this.#pool.waitingCount > 0 || this.#isFull;
    const asked = performance.now();
    const client = await (isQueued ? this.#queue(needs.limitMs) : this.#pool.connect().catch(refuse));
    const since = performance.now();
    settings.setPlan(client, needs.plan);
    return {
      client,
      queuedMs: isQueued ? since - asked : 0,
      command: (text) => this.#watched(client, client.query(text), needs),
      send: (statement) => this.#watched(client, statements.send(client, statement), needs),
      sendTogether: (all) => this.#watched(client, statements.sendTogether(client, all), needs),
      release: (destroy) => {
        this.#estimate.note(performance.now() - since);
        client.release(destroy);
      },
    };
  }

  /** Sends a statement outside a transaction. */
  async send(statement: Sql, needs: LeaseNeeds = {}): Promise<Outcome> {
    const { settings, statements } = this.#options;
    const lease = await this.lease(needs);
    const waited = needs.limitMs === undefined ? 0 : lease.queuedMs;
    const limit = limitOf(needs);
    const since = performance.now();
    const note = (): void => statements.history.noteAnswer(statement.text, performance.now() - since);
    let isClean = true;
    try {
      const outcome = await settings.sendWithin(lease, statement, Math.max(1, limit - waited));
      note();
      return outcome;
    } catch (error) {
      note();
      statements.history.noteFailure(statement.text);
      isClean = !isConnectionLoss(error) && !isStalePlan(error);
      // The statement did not get the time that it is allowed, so nothing is known of its cost.
      throw isQueryCanceled(error) && waited > limit * MOST_WAITED ? new QueueFull(waited) : error;
    } finally {
      lease.release(!isClean);
    }
  }

  async rows(statement: Sql, needs?: LeaseNeeds): Promise<readonly Cells[]> {
    return (await this.send(statement, needs)).rows;
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  get #isFull(): boolean {
    return this.#pool.totalCount >= this.#pool.options.max;
  }

  /** Waits behind others. A connection that comes too late goes back. */
  async #queue(limitMs = Number.POSITIVE_INFINITY): Promise<pg.PoolClient> {
    const waitMs = Math.min(limitMs, this.#options.maxWaitMs ?? MAX_WAIT_MS);
    const connecting = this.#pool.connect();
    const ended = new AbortController();
    const late = sleep(waitMs, undefined, { signal: ended.signal }).then(() => {
      connecting.then(
        (client) => client.release(),
        () => undefined,
      );
      throw new StoreError('unavailable');
    });
    late.catch(() => undefined);
    try {
      return await Promise.race([connecting, late]);
    } catch (error) {
      if (!(toStoreError(error) instanceof StoreError)) throw error;
      throw new QueueFull(Math.max(waitMs, this.#estimate.waitOf(this.#pool.waitingCount)));
    } finally {
      ended.abort();
    }
  }

  /** A statement whose connection is given up fails with the loss of it. */
  async #watched<T>(client: pg.ClientBase, answer: Promise<T>, needs: LeaseNeeds): Promise<T> {
    const { isAtWork = async () => true } = this.#options;
    const { silenceMs } = needs;
    const deadline = needs.isUnlimited ? Number.POSITIVE_INFINITY : performance.now() + limitOf(needs) + GRACE_MS;
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

function refuse(error: unknown): never {
  throw toStoreError(error);
}

/** Milliseconds. */
const limitOf = ({ limitMs = TIME_LIMIT_MS }: LeaseNeeds): number => Math.min(limitMs, TIME_LIMIT_MS);
