/** Connections that one statement or one transaction at a time has for itself, and the queue for them. */
import { type FairQueue, type FairQueueOptions, MAX_WAIT_MS } from '../../fair-queue.ts';
import { type Sql, sql, text } from '../../sql.ts';
import { type Cells, type ReadOptions, StoreError, type WriteTarget } from '../contract.ts';
import type { Outcome } from '../pg-internals.ts';
import { TIME_LIMIT_MS } from '../server-url.ts';
import { isConnectionLoss } from '../to-store-error.ts';
import type { Lease } from '../transaction.ts';
import { Connection, type LaneOptions, NotAnswered } from './connection.ts';
import { laneQueue } from './queue.ts';

/** Milliseconds beyond the server's own time limit after which the client gives up the connection. */
const GRACE_MS = 2_000;

/** Connections are the places: `kept` ones are beside `size`. */
export interface LeasePoolOptions extends LaneOptions, Omit<FairQueueOptions, 'places' | 'refuse'> {
  /** A statement of a text that has proved slow, or whose connection is silent, is given up. */
  readonly isForTrials?: boolean;
}

/** `limitMs`: a statement may wait for so long, and then take as long. */
export interface LeaseNeeds extends Pick<ReadOptions, 'limitMs' | 'plan'>, Pick<WriteTarget, 'first'> {
  /** Milliseconds after which a silent connection is given up, 0: at once. Default: some more than the server's limit. */
  readonly silentMs?: number;
}

/** The limit ends with the transaction of its statement, so it costs no round trip and works through poolers. */
const timeLimit = (ms: number): Sql =>
  sql`SELECT set_config('statement_timeout', ${text(String(Math.ceil(ms)))}, true)`;

export class LeasePool {
  readonly #options: LeasePoolOptions;
  readonly #queue: FairQueue;
  /** The connection that was used last is at the end, so that others may rest. */
  readonly #free: Connection[];

  constructor(options: LeasePoolOptions) {
    this.#options = options;
    const { size, kept = 0 } = options;
    this.#queue = laneQueue({ ...options, places: size });
    this.#free = Array.from({ length: size + kept }, () => new Connection(options));
  }

  /** Throws QueueFull where the wait is too long. */
  async lease(needs: LeaseNeeds = {}): Promise<Lease> {
    const { statements, maxWaitMs = MAX_WAIT_MS, isForTrials } = this.#options;
    const { limitMs = TIME_LIMIT_MS, silentMs = isForTrials ? 0 : limitMs + GRACE_MS, plan } = needs;
    const leave = await this.#queue.enter(Math.min(limitMs, maxWaitMs));
    const connection = this.#free.pop()!;
    const release = (isDestroyed: boolean): void => {
      if (isDestroyed) connection.close().catch(() => undefined);
      else connection.rest();
      this.#free.push(connection);
      leave();
    };
    const client = await connection.client().catch((error: unknown) => {
      release(true);
      throw error;
    });
    statements.setPlan(client, plan);
    const watched = <T>(answer: Promise<T>): Promise<T> => connection.watched(client, answer, silentMs);
    return {
      send: (...all) => watched(statements.send(client, ...all)),
      sendTogether: (all) => watched(statements.sendTogether(client, all)),
      release,
    };
  }

  /** Sends a statement outside a transaction. */
  async send(statement: Sql, needs: LeaseNeeds = {}): Promise<Outcome> {
    const { history } = this.#options.statements;
    const lease = await this.lease(needs);
    const { limitMs = Number.POSITIVE_INFINITY } = needs;
    // The text may have proved slow while this statement waited for its place.
    if (this.#options.isForTrials && history.speedOf(statement.text) === 'slow') {
      lease.release(false);
      throw new NotAnswered('the statement is slow');
    }
    const since = performance.now();
    let failure: unknown;
    try {
      const limit = needs.limitMs === undefined ? [] : [timeLimit(limitMs)];
      return await lease.send(...limit, ...(needs.first === undefined ? [] : [needs.first]), statement);
    } catch (error) {
      failure = error;
      // A server that cannot interrupt its work loses the connection instead: the time is up all the same.
      throw performance.now() - since >= limitMs ? new StoreError('time_limit', error) : error;
    } finally {
      history.noteAnswer(statement.text, performance.now() - since, { hasFailed: failure !== undefined });
      lease.release(isConnectionLoss(failure));
    }
  }

  async rows(statement: Sql, needs?: LeaseNeeds): Promise<readonly Cells[]> {
    return (await this.send(statement, needs)).rows;
  }

  async close(): Promise<void> {
    await this.#queue.close();
    await Promise.all(this.#free.map((connection) => connection.close()));
  }
}
