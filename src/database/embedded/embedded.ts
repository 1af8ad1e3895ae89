/**
 * PostgreSQL inside this process (PGlite), in a thread: a single connection, on which statements
 * and transactions take turns.
 */
import type pg from 'pg';
import { invariant } from '../../invariant.ts';
import { raw, type Sql } from '../../sql.ts';
import { type Database, type Queryable, StoreError } from '../contract.ts';
import { QueueEstimate } from '../lanes/queue-estimate.ts';
import { type StatementHistory, Statements } from '../lanes/statements.ts';
import { WriteBatcher } from '../lanes/write-batcher.ts';
import type { Outcome } from '../pg-internals.ts';
import { planOf } from '../planner.ts';
import { notifyStatement, PING } from '../postgres.ts';
import { isDivisionByZero } from '../to-store-error.ts';
import { type Lease, mustNotHoldConnection, retried, transact } from '../transaction.ts';
import { EmbeddedEngine, type EmbeddedOptions, listenTo } from './embedded-engine.ts';

const MAX_QUEUED = 2_000;

export async function openEmbedded(options: EmbeddedOptions): Promise<Database> {
  const statements = new Statements(options.preparedStatements);
  return databaseOn(new EmbeddedConnection(await EmbeddedEngine.open(options), statements), statements.history);
}

/**
 * Milliseconds that a unit of the planner's cost takes at least. A sequential scan of a million
 * rows costs some 20,000 and takes 300 ms; but the estimate of a recursive query over tables
 * without statistics is ten times too high, and such a query must not be rejected.
 */
const MS_OF_COST = 0.002;

/** No statement can be cancelled here, so the planner's estimate decides before it runs. Throws `time_limit`. */
async function mustBeCheap(rows: Queryable['rows'], statement: Sql, limitMs: number): Promise<void> {
  const cost = (await planOf({ rows }, statement))['Total Cost'];
  if (cost * MS_OF_COST <= limitMs) return;
  throw new StoreError('time_limit', undefined, new Error(`expected to cost ${cost}`));
}

/** Raises division_by_zero after `ms`; the clock keeps it from being constant-folded. */
const inTime = (ms: number): Sql =>
  raw(
    `(clock_timestamp() < statement_timestamp() + interval '${Math.ceil(ms)} ms' OR 1 / (extract(epoch FROM clock_timestamp()) * 0)::int = 1)`,
  );

function timeLimitError(error: unknown): never {
  throw isDivisionByZero(error) ? new StoreError('time_limit', undefined, error) : error;
}

/** First come, first served. */
class Turns {
  readonly #estimate = new QueueEstimate(1, MAX_QUEUED);
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Resolves when all callers so far have been served. */
  get served(): Promise<void> {
    return this.#last;
  }

  /** @param isStatement false: the time of the turn is not typical of statements */
  async take(isStatement: boolean): Promise<() => void> {
    this.#estimate.admit(this.#waiting);
    this.#waiting++;
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    this.#waiting--;
    const since = performance.now();
    return () => {
      if (isStatement) this.#estimate.note(performance.now() - since);
      resolve();
    };
  }
}

/** The only connection, for a single statement or transaction at a time. */
class EmbeddedConnection {
  readonly engine: EmbeddedEngine;
  readonly #statements: Statements;
  readonly #turns = new Turns();
  readonly #slowTurns = new Turns();

  constructor(engine: EmbeddedEngine, statements: Statements) {
    this.engine = engine;
    this.#statements = statements;
  }

  /** Rejects with `unavailable` if the engine has ended and cannot be started again. */
  async lease(isStatement = true): Promise<Lease> {
    const release = await this.#turns.take(isStatement);
    try {
      return this.#leaseOf(await this.engine.client(), release);
    } catch (error) {
      release();
      throw error;
    }
  }

  #leaseOf(client: pg.Client, release: () => void): Lease {
    const statements = this.#statements;
    return {
      command: (text) => client.query(text),
      send: (statement) => statements.send(client, statement),
      sendTogether: (all) => statements.sendTogether(client, all),
      release,
    };
  }

  async alone(statement: Sql): Promise<Outcome> {
    mustNotHoldConnection();
    const { send, release } = await this.lease();
    try {
      // After a migration, a statement that was prepared before it has to be prepared again.
      return await retried(() => send(statement));
    } finally {
      release(false);
    }
  }

  /** At most one slow statement is queued for the connection, so a quick one waits for a single slow one. */
  async slowly(statement: Sql): Promise<Outcome> {
    mustNotHoldConnection();
    const release = await this.#slowTurns.take(true);
    try {
      return await this.alone(statement);
    } finally {
      release();
    }
  }

  async copyFolder(copy: (folder: string) => Promise<void>): Promise<void> {
    const { folder } = this.engine;
    invariant(folder !== undefined, 'a database in memory has no folder');
    mustNotHoldConnection();
    const { send, release } = await this.lease(false);
    try {
      await send(raw('CHECKPOINT'));
      await copy(folder);
    } finally {
      release(false);
    }
  }

  /** Waits for statements under way. */
  async close(): Promise<void> {
    await this.#slowTurns.served;
    const release = await this.#turns.take(false);
    await this.engine.close();
    release();
  }
}

function databaseOn(connection: EmbeddedConnection, history: StatementHistory): Database {
  const { engine } = connection;
  const lease = () => connection.lease();
  const alone = (statement: Sql): Promise<Outcome> => connection.alone(statement);
  const gathered = new WriteBatcher({ lease, alone, history, connections: 1, mostUnanswered: MAX_QUEUED });
  const rows = (statement: Sql) => gathered.rows(statement);
  const slowly = async (statement: Sql, limitMs: number | undefined) => {
    if (limitMs !== undefined) await mustBeCheap(rows, statement, limitMs);
    return (await connection.slowly(statement)).rows;
  };
  const database: Database = {
    kind: 'embedded',
    rows: (statement, { lane, limitMs } = {}) =>
      lane === 'slow' ? slowly(statement, limitMs).catch(timeLimitError) : rows(statement),
    statementInTime: inTime,
    replicaFor: () => database,
    noteWrite: async () => undefined,
    run: async (statement) => (await alone(statement)).count,
    write: (statement, target) => gathered.rows(statement, target),
    transaction: (work, options) => transact(lease, work, options),
    ...(engine.folder !== undefined && { copyFolder: (copy) => connection.copyFolder(copy) }),
    async listen(channel, onMessage, onState) {
      const stop = engine.subscribe({ channel, onMessage, onState });
      await alone(listenTo(channel));
      onState(true);
      return async () => stop();
    },
    async notify(channel, payload) {
      // Sent alone, because PostgreSQL deduplicates the notifications of a transaction.
      await alone(notifyStatement(channel, payload));
    },
    async ping() {
      await rows(PING);
    },
    async close() {
      await gathered.close();
      await connection.close();
    },
  };
  return database;
}
