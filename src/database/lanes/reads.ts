/**
 * The lanes for SELECTs of one server. A SELECT starts in the fastest lane that its text has earned: quick texts are
 * pipelined, unknown ones get a pooled connection, slow ones wait for each other. If its connection is lost, or stays
 * silent for `SILENCE_MS`, the SELECT is sent again one lane further down, so that nothing slow holds up anything else.
 */
import type pg from 'pg';
import { invariant } from '../../invariant.ts';
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, type Reader, type ReadOptions, StoreError } from '../contract.ts';
import { isConnectionLoss, isQueryCanceled, isTransient, toStoreError } from '../to-store-error.ts';
import { mustNotHoldConnection } from '../transaction.ts';
import type { LeaseNeeds, LeasePool, PooledLease } from './lease-pool.ts';
import { NotAnswered, Pipeline, SILENCE_MS } from './pipeline.ts';
import type { Plan, SessionSettings } from './session-settings.ts';
import type { StatementHistory } from './statement-history.ts';
import type { Statements } from './statements.ts';

/** Milliseconds beyond the server's own time limit after which the client gives up the connection. */
export const GRACE_MS = 2_000;
/** The share of its time that a statement may wait; beyond, its wait was too long, and not the statement. */
const MOST_WAITED = 0.1;

export interface ReadsOptions {
  readonly connect: () => Promise<pg.Client>;
  readonly statements: Statements;
  readonly history: StatementHistory;
  readonly settings: SessionSettings;
  /** Connections of the pipeline. */
  readonly size: number;
  /** For statements that are neither quick nor slow; for slow ones; for urgent ones. */
  readonly pool: LeasePool;
  readonly slowPool: LeasePool;
  readonly urgentPool: LeasePool;
  /** The time limit of the server. Milliseconds. */
  readonly timeLimit: number;
}

export class Reads implements Pick<Reader, 'rows'> {
  readonly #options: ReadsOptions;
  readonly #pipeline: Pipeline;

  constructor(options: ReadsOptions) {
    this.#options = options;
    this.#pipeline = new Pipeline(options);
  }

  async rows(statement: Sql, { lane = 'quick', limitMs, plan }: ReadOptions = {}): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    if (lane === 'slow') return this.#slowly(statement, limitMs);
    invariant(isRead(statement), 'only SELECTs can be asked twice');
    if (lane === 'urgent') return this.#urgently(statement);
    const { history, pool } = this.#options;
    const wanted = statement.isPlannedAnew ? undefined : plan;
    const { text } = statement;
    try {
      if (history.speedOf(text) === 'quick') return await this.#pipeline.rows(statement, wanted);
    } catch (error) {
      mustBeLost(error);
    }
    try {
      if (history.speedOf(text) !== 'slow')
        return await this.#pooled(pool, statement, { plan: wanted, silenceMs: SILENCE_MS });
    } catch (error) {
      mustBeLost(error);
    }
    return this.#slowly(statement, undefined, wanted);
  }

  async close(): Promise<void> {
    const { pool, slowPool, urgentPool } = this.#options;
    await Promise.all([this.#pipeline, pool, slowPool, urgentPool].map((each) => each.close()));
  }

  /** Each connection of the pool may be lost before one is new. */
  async #urgently(statement: Sql): Promise<readonly Cells[]> {
    const { urgentPool } = this.#options;
    for (let attempt = 0; attempt < URGENT_CONNECTIONS; attempt++) {
      try {
        return await this.#pooled(urgentPool, statement, { silenceMs: SILENCE_MS });
      } catch (error) {
        mustBeLost(error);
      }
    }
    return this.#pooled(urgentPool, statement, {}).catch((error: unknown) => {
      throw toStoreError(error);
    });
  }

  async #slowly(statement: Sql, limitMs?: number, plan?: Plan): Promise<readonly Cells[]> {
    for (let count = 1; ; count++) {
      try {
        return await this.#withinLimit(statement, limitMs, plan);
      } catch (error) {
        if (limitMs !== undefined && isQueryCanceled(error)) throw new StoreError('time_limit', undefined, error);
        const mayRetry = count === 1 && isRead(statement) && (isConnectionLoss(error) || isTransient(error));
        if (!mayRetry) throw toStoreError(error);
      }
    }
  }

  async #pooled(pool: LeasePool, statement: Sql, needs: LeaseNeeds): Promise<readonly Cells[]> {
    const deadlineMs = this.#options.timeLimit + GRACE_MS;
    return this.#measured(await pool.lease({ deadlineMs, ...needs }), statement, (lease) => lease.send(statement));
  }

  /** The time that the statement waits for a connection counts. */
  async #withinLimit(statement: Sql, limitMs: number | undefined, plan: Plan): Promise<readonly Cells[]> {
    const { settings, slowPool, timeLimit } = this.#options;
    const limit = Math.min(limitMs ?? timeLimit, timeLimit);
    const asked = performance.now();
    const lease = await slowPool.lease({ deadlineMs: limit + GRACE_MS, waitMs: limitMs, plan });
    const waited = limitMs === undefined ? 0 : performance.now() - asked;
    try {
      return await this.#measured(lease, statement, () =>
        settings.sendWithin(lease, statement, Math.max(1, limit - waited)),
      );
    } catch (error) {
      // The statement did not get the time that it is allowed, so nothing is known of its cost.
      throw isQueryCanceled(error) && waited > limit * MOST_WAITED ? new QueueFull(waited) : error;
    }
  }

  async #measured(
    lease: PooledLease,
    { text }: Sql,
    send: (lease: PooledLease) => ReturnType<PooledLease['send']>,
  ): Promise<readonly Cells[]> {
    const { history } = this.#options;
    const since = performance.now();
    let isClean = false;
    try {
      const { rows } = await send(lease);
      history.noteAnswer(text, performance.now() - since);
      isClean = true;
      return rows;
    } catch (error) {
      history.noteAnswer(text, performance.now() - since);
      history.noteFailure(text);
      isClean = !isConnectionLoss(error) && !isTransient(error);
      throw error;
    } finally {
      lease.release(!isClean);
    }
  }
}

export const URGENT_CONNECTIONS = 2;

/** Throws the error of the statement itself. */
function mustBeLost(error: unknown): void {
  if (!(error instanceof NotAnswered) && !isConnectionLoss(error) && !isTransient(error)) throw toStoreError(error);
}

/** Looks at the first word; no statement of ours is a `SELECT … INTO`. */
function isRead(statement: Sql): boolean {
  return /^\s*(?:SELECT|EXPLAIN)\b/i.test(statement.text);
}
