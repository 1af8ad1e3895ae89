/**
 * The lanes for SELECTs of one server: fast ones are pipelined, those that turned out slow wait for
 * each other only.
 */
import type pg from 'pg';
import type { Sql } from '../../sql.ts';
import { type Cells, type Reader, StoreError } from './contract.ts';
import type { LeasePool } from './lease-pool.ts';
import { isRead, Pipeline } from './pipeline.ts';
import { SlowShapes } from './slow-shapes.ts';
import type { Outcome, Statements } from './statements.ts';
import { isConnectionLoss, isQueryCanceled, isTransient, toStoreError } from './to-store-error.ts';
import { type Lease, mustNotHoldConnection } from './transaction.ts';

/**
 * What a client allows beyond the server's own time limit before it gives up the connection.
 * Milliseconds.
 */
export const GRACE_MS = 2_000;

export interface ReadsOptions {
  readonly connect: () => Promise<pg.Client>;
  readonly statements: Statements;
  readonly slowPool: LeasePool;
  readonly size: number;
  readonly mostPrivate: number;
  /** The time limit of the server. Milliseconds. */
  readonly timeLimit: number;
}

export class Reads implements Pick<Reader, 'rows' | 'slowRows'> {
  readonly #options: ReadsOptions;
  readonly #shapes = new SlowShapes();
  readonly #pipeline: Pipeline;

  constructor(options: ReadsOptions) {
    this.#options = options;
    const { connect, statements, size, mostPrivate, timeLimit } = options;
    this.#pipeline = new Pipeline({
      connect,
      statements,
      shapes: this.#shapes,
      size,
      mostPrivate,
      deadlineMs: timeLimit + GRACE_MS,
      overflow: (statement) => this.slowRows(statement),
    });
  }

  async rows(statement: Sql): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    const speed = this.#shapes.speedOf(statement.text);
    const isForSlow = speed === 'certainly slow' || (speed === 'slow' && this.#options.slowPool.hasRoom);
    return isForSlow ? this.slowRows(statement) : this.#pipeline.rows(statement);
  }

  async slowRows(statement: Sql, limitMs?: number): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    for (let count = 1; ; count++) {
      try {
        return await this.#alone(statement, limitMs);
      } catch (error) {
        if (limitMs !== undefined && isQueryCanceled(error)) throw new StoreError('time_limit', undefined, error);
        const mayRetry = count === 1 && isRead(statement) && (isConnectionLoss(error) || isTransient(error));
        if (!mayRetry) throw toStoreError(error);
      }
    }
  }

  async close(): Promise<void> {
    await this.#pipeline.close();
  }

  /** On a connection of its own. */
  async #alone(statement: Sql, limitMs: number | undefined): Promise<readonly Cells[]> {
    const limit = Math.min(limitMs ?? this.#options.timeLimit, this.#options.timeLimit);
    const lease = await this.#options.slowPool.lease(limit + GRACE_MS);
    let isClean = false;
    try {
      const since = performance.now();
      const sent = limitMs === undefined ? lease.send(statement) : sendWithin(lease, statement, limit);
      const { rows } = await sent;
      this.#shapes.note(statement.text, performance.now() - since);
      isClean = true;
      return rows;
    } catch (error) {
      isClean = !isConnectionLoss(error) && !isTransient(error);
      throw error;
    } finally {
      lease.release(!isClean);
    }
  }
}

/**
 * Sent together, so that the time limit costs no round trip. The setting ends with the transaction,
 * so that a pooler may stand in between; the COMMIT of one that failed rolls it back.
 */
async function sendWithin(lease: Lease, statement: Sql, limit: number): Promise<Outcome> {
  const begun = lease.command(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${Math.ceil(limit)}`);
  const [begin, answer, end] = await Promise.allSettled([begun, lease.send(statement), lease.command('COMMIT')]);
  if (begin.status === 'rejected') throw begin.reason;
  if (answer.status === 'rejected') throw answer.reason;
  if (end.status === 'rejected') throw end.reason;
  return answer.value;
}
