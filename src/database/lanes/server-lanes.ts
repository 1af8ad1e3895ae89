/**
 * The lanes of one server. A SELECT starts in the fastest lane that its text has earned: quick texts are pipelined,
 * unknown ones get a pooled connection, slow ones wait for each other. If its connection is lost, or stays silent, the
 * SELECT is sent again one lane further down, so that nothing slow holds up anything else. Writes and transactions have
 * connections of their own.
 */
import { invariant } from '../../invariant.ts';
import { raw, type Sql } from '../../sql.ts';
import { type Cells, type ReadOptions, StoreError, type WriteTarget } from '../contract.ts';
import { countOf, type Outcome } from '../pg-internals.ts';
import { LOCK_LIMIT, type ServerUrl, TIME_LIMIT_MS, withSetting } from '../server-url.ts';
import { isConnectionLoss, isQueryCanceled, isTransient, toStoreError } from '../to-store-error.ts';
import { type Lease, mustNotHoldConnection, retried } from '../transaction.ts';
import { NotAnswered } from './connection.ts';
import { LeasePool, type LeasePoolOptions } from './lease-pool.ts';
import { Pipeline } from './pipeline.ts';
import { Statements } from './statements.ts';
import { WriteBatcher } from './write-batcher.ts';

export interface LaneSizes {
  /** Connections for writes and transactions (default 16), for quick reads (4, twice), and for slow reads (3). */
  readonly poolSize?: number;
  readonly pipelines?: number;
  readonly slowReads?: number;
  /** How many prepared statements of short texts a connection keeps (default 256). */
  readonly preparedStatements?: number;
}

const URGENT_CONNECTIONS = 2;
/** A slow statement takes one processor, and leaves the others to fast ones. */
const ONE_PROCESSOR = '-c max_parallel_workers_per_gather=0';
/** Limits of a batch: slow statements are retried alone. Settings of the transaction work through poolers. */
const BATCH_LIMITS = raw("SELECT set_config('lock_timeout', '20', true), set_config('statement_timeout', '20', true)");

export class ServerLanes {
  readonly #statements: Statements;
  readonly #pipeline: Pipeline;
  /** Runs SELECTs that are neither quick nor slow. */
  readonly #pool: LeasePool;
  readonly #slowPool: LeasePool;
  readonly #urgentPool: LeasePool;
  readonly #writePool: LeasePool;
  readonly #batcher: WriteBatcher;
  #separate: ReadonlySet<string> = new Set();

  constructor({ config, isPooled }: ServerUrl, sizes: LaneSizes) {
    const { poolSize = 16, pipelines = 4, slowReads = 3, preparedStatements } = sizes;
    const statements = new Statements(isPooled ? 0 : preparedStatements);
    const pool = (size: number, more: Partial<LeasePoolOptions> = {}): LeasePool =>
      new LeasePool({ config, isPooled, statements, size, kept: 1, ...more });
    this.#statements = statements;
    this.#pipeline = new Pipeline({ config, isPooled, statements, size: pipelines });
    // A burst of new texts waits as it would in the pipeline.
    this.#pool = pool(pipelines, { isForTrials: true, maxWaitMs: TIME_LIMIT_MS, dropsLeft: true });
    this.#slowPool = pool(slowReads + 1, { spare: 1, config: withSetting(config, ONE_PROCESSOR), dropsLeft: true });
    this.#urgentPool = pool(URGENT_CONNECTIONS, { kept: 0 });
    this.#writePool = pool(poolSize, { config: withSetting(config, LOCK_LIMIT) });
    this.#batcher = new WriteBatcher({
      lease: () => this.lease(),
      alone: (statement) => this.#writeAlone(statement),
      history: statements.history,
      connections: poolSize,
      limits: BATCH_LIMITS,
    });
  }

  async rows(statement: Sql, options: ReadOptions = {}): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    let failure: unknown;
    for (const answer of this.#attempts(statement, options)) {
      try {
        return await answer;
      } catch (error) {
        if (options.limitMs !== undefined && isQueryCanceled(error)) throw new StoreError('time_limit', error);
        if (!isLost(error)) throw toStoreError(error);
        failure = error;
      }
    }
    throw toStoreError(failure);
  }

  async run(statement: Sql): Promise<number> {
    return countOf(await this.#writeAlone(statement));
  }

  async write(statement: Sql, target: WriteTarget = {}): Promise<readonly Cells[]> {
    const { table = '', isDivided = false, first, plan } = target;
    if (isDivided || first !== undefined || this.#separate.has(table))
      return (await this.#writeAlone(statement, { plan, first })).rows;
    return this.#batcher.rows(statement, target);
  }

  lease(isUnlimited = false): Promise<Lease> {
    return this.#writePool.lease(isUnlimited ? { silentMs: Number.POSITIVE_INFINITY } : {});
  }

  separateWritesTo(tables: readonly string[]): void {
    this.#separate = new Set(tables);
  }

  async close(): Promise<void> {
    const lanes = [this.#pipeline, this.#pool, this.#slowPool, this.#urgentPool, this.#batcher];
    await Promise.all(lanes.map((lane) => lane.close()));
    await this.#writePool.close();
  }

  /**
   * The next attempt is made if the answer of the one before was lost, which may have changed the speed of the text.
   */
  *#attempts(statement: Sql, { lane = 'quick', limitMs, plan }: ReadOptions): Generator<Promise<readonly Cells[]>> {
    const { history } = this.#statements;
    const { text, isPlannedAnew } = statement;
    invariant(lane === 'slow' || isRead(text), 'only SELECTs can be asked twice');
    if (lane === 'urgent') {
      // Each connection of the pool may be lost before one is new.
      for (let i = 0; i < URGENT_CONNECTIONS; i++) yield this.#urgentPool.rows(statement, { silentMs: 0 });
      yield this.#urgentPool.rows(statement);
      return;
    }
    const wanted = lane === 'slow' || isPlannedAnew ? undefined : plan;
    if (lane === 'quick' || lane === 'query') {
      if (history.speedOf(text) === 'quick') yield this.#pipeline.rows(statement, wanted);
      if (history.speedOf(text) !== 'slow') yield this.#pool.rows(statement, { plan: wanted });
    }
    const needs = { limitMs, plan: wanted };
    yield this.#slowPool.rows(statement, needs);
    if (isRead(text)) yield this.#slowPool.rows(statement, needs);
  }

  async #writeAlone(statement: Sql, needs: Pick<WriteTarget, 'plan' | 'first'> = {}): Promise<Outcome> {
    mustNotHoldConnection();
    return retried(() => this.#writePool.send(statement, needs));
  }
}

/** The statement itself is not to blame. */
const isLost = (error: unknown): boolean =>
  error instanceof NotAnswered || isConnectionLoss(error) || isTransient(error);

/** Looks at the first word; no statement of ours is a `SELECT … INTO`. */
const isRead = (text: string): boolean => /^\s*(?:SELECT|EXPLAIN)\b/i.test(text);
