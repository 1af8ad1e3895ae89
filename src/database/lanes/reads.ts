/**
 * The lanes for SELECTs of one server. A SELECT starts in the fastest lane that its text has earned: quick texts are
 * pipelined, unknown ones get a pooled connection, slow ones wait for each other. If its connection is lost, or stays
 * silent for `SILENCE_MS`, the SELECT is sent again one lane further down, so that nothing slow holds up anything else.
 */
import { invariant } from '../../invariant.ts';
import type { Sql } from '../../sql.ts';
import { type Cells, type Reader, type ReadOptions, StoreError } from '../contract.ts';
import { isConnectionLoss, isQueryCanceled, isTransient, toStoreError } from '../to-store-error.ts';
import { mustNotHoldConnection } from '../transaction.ts';
import type { LeasePool } from './lease-pool.ts';
import { NotAnswered, type Pipeline } from './pipeline.ts';
import type { StatementHistory } from './statements.ts';

export const URGENT_CONNECTIONS = 2;

export interface ReadsOptions {
  readonly history: StatementHistory;
  readonly pipeline: Pipeline;
  /** `pool` runs statements that are neither quick nor slow; the others run slow and urgent ones. */
  readonly pool: LeasePool;
  readonly slowPool: LeasePool;
  readonly urgentPool: LeasePool;
}

export class Reads implements Pick<Reader, 'rows'> {
  readonly #options: ReadsOptions;

  constructor(options: ReadsOptions) {
    this.#options = options;
  }

  async rows(statement: Sql, options: ReadOptions = {}): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    let failure: unknown;
    for (const answer of this.#attempts(statement, options)) {
      try {
        return await answer;
      } catch (error) {
        if (options.limitMs !== undefined && isQueryCanceled(error)) {
          throw new StoreError('time_limit', undefined, error);
        }
        if (!isLost(error)) throw toStoreError(error);
        failure = error;
      }
    }
    throw toStoreError(failure);
  }

  async close(): Promise<void> {
    const { pipeline, pool, slowPool, urgentPool } = this.#options;
    await Promise.all([pipeline, pool, slowPool, urgentPool].map((each) => each.close()));
  }

  /**
   * The next attempt is made if the answer of the one before was lost, which may have changed the
   * speed of the text.
   */
  *#attempts(statement: Sql, { lane = 'quick', limitMs, plan }: ReadOptions): Generator<Promise<readonly Cells[]>> {
    const { history, pipeline, pool, slowPool, urgentPool } = this.#options;
    const { text, isPlannedAnew } = statement;
    invariant(lane === 'slow' || isRead(text), 'only SELECTs can be asked twice');
    if (lane === 'urgent') {
      // Each connection of the pool may be lost before one is new.
      for (let i = 0; i < URGENT_CONNECTIONS; i++) yield urgentPool.rows(statement, { isQuick: true });
      yield urgentPool.rows(statement);
      return;
    }
    const wanted = lane === 'slow' || isPlannedAnew ? undefined : plan;
    if (lane === 'quick') {
      if (history.speedOf(text) === 'quick') yield pipeline.rows(statement, wanted);
      if (history.speedOf(text) !== 'slow') yield pool.rows(statement, { plan: wanted, isQuick: true });
    }
    const needs = { limitMs, plan: wanted };
    yield slowPool.rows(statement, needs);
    if (isRead(text)) yield slowPool.rows(statement, needs);
  }
}

/** The statement itself is not to blame. */
const isLost = (error: unknown): boolean =>
  error instanceof NotAnswered || isConnectionLoss(error) || isTransient(error);

/** Looks at the first word; no statement of ours is a `SELECT … INTO`. */
const isRead = (text: string): boolean => /^\s*(?:SELECT|EXPLAIN)\b/i.test(text);
