/**
 * The lanes for SELECTs of one server: fast ones are pipelined, those that turned out slow wait for
 * each other only.
 */
import type pg from 'pg';
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, type Reader, type ReadOptions, StoreError } from '../contract.ts';
import { isConnectionLoss, isQueryCanceled, isTransient, toStoreError } from '../to-store-error.ts';
import { mustNotHoldConnection } from '../transaction.ts';
import type { LeasePool } from './lease-pool.ts';
import { isRead, Pipeline } from './pipeline.ts';
import { SlowShapes } from './slow-shapes.ts';
import type { StatementLimits } from './statement-limits.ts';
import type { Statements } from './statements.ts';

/**
 * What a client allows beyond the server's own time limit before it gives up the connection.
 * Milliseconds.
 */
export const GRACE_MS = 2_000;

/** The share of its time that a statement may wait, and still be told that it took too long itself. */
const MOST_WAITED = 0.1;

/**
 * PostgreSQL takes a generic plan over partitions for dearer than it is, and plans each statement
 * anew, which takes as long as to run it.
 */
export const GENERIC_PLANS = '-c plan_cache_mode=force_generic_plan';
const OF_TENANTS = { size: 2, mostPrivate: 2 };

export interface ReadsOptions {
  /** `settings`: of the session, as flags. */
  readonly connect: (settings?: string) => Promise<pg.Client>;
  readonly statements: Statements;
  readonly slowPool: LeasePool;
  readonly limits: StatementLimits;
  readonly size: number;
  readonly mostPrivate: number;
  /** The time limit of the server. Milliseconds. */
  readonly timeLimit: number;
}

export class Reads implements Pick<Reader, 'rows'> {
  readonly #options: ReadsOptions;
  readonly #shapes = new SlowShapes();
  readonly #pipeline: Pipeline;
  readonly #ofTenants: Pipeline;

  constructor(options: ReadsOptions) {
    this.#options = options;
    const { connect, statements, size, mostPrivate, timeLimit } = options;
    const common = { statements, shapes: this.#shapes, deadlineMs: timeLimit + GRACE_MS };
    const overflow = (statement: Sql) => this.slowRows(statement);
    this.#pipeline = new Pipeline({ ...common, connect, size, mostPrivate, overflow });
    const connectGeneric = () => connect(GENERIC_PLANS);
    this.#ofTenants = new Pipeline({ ...common, connect: connectGeneric, ...OF_TENANTS, overflow });
  }

  async rows(statement: Sql, { lane, limitMs, plan }: ReadOptions = {}): Promise<readonly Cells[]> {
    if (lane === 'slow') return this.slowRows(statement, limitMs);
    const isGeneric = plan === 'generic' && !statement.isPlannedAnew;
    return this.#fast(isGeneric ? this.#ofTenants : this.#pipeline, statement);
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
    await Promise.all([this.#pipeline.close(), this.#ofTenants.close()]);
  }

  #fast(pipeline: Pipeline, statement: Sql): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    const speed = this.#shapes.speedOf(statement.text);
    const isForSlow = speed === 'certainly slow' || (speed === 'slow' && this.#options.slowPool.hasRoom);
    return isForSlow ? this.slowRows(statement) : pipeline.rows(statement);
  }

  /** On a connection of its own; the time that it waits for one counts. */
  async #alone(statement: Sql, limitMs: number | undefined): Promise<readonly Cells[]> {
    const { limits, slowPool, timeLimit } = this.#options;
    const limit = Math.min(limitMs ?? timeLimit, timeLimit);
    const asked = performance.now();
    const lease = await slowPool.lease({ deadlineMs: limit + GRACE_MS, waitMs: limitMs });
    const waited = limitMs === undefined ? 0 : performance.now() - asked;
    let isClean = false;
    try {
      const since = performance.now();
      const { rows } = await limits.send(lease, statement, Math.max(1, limit - waited));
      this.#shapes.note(statement.text, performance.now() - since);
      isClean = true;
      return rows;
    } catch (error) {
      isClean = !isConnectionLoss(error) && !isTransient(error);
      // It was not given the time that it is allowed, so nothing is known of its cost.
      throw isQueryCanceled(error) && waited > limit * MOST_WAITED ? new QueueFull(waited) : error;
    } finally {
      lease.release(!isClean);
    }
  }
}
