/**
 * PostgreSQL inside this process (PGlite), in a thread: a single connection, on which statements
 * and transactions take turns.
 */
import { currentCaller } from '../../caller.ts';
import { MAX_WAIT_MS } from '../../fair-queue.ts';
import { raw, type Sql } from '../../sql.ts';
import { type Cells, type Database, type Reader, StoreError } from '../contract.ts';
import { laneQueue } from '../lanes/queue.ts';
import { Statements } from '../lanes/statements.ts';
import { WriteBatcher } from '../lanes/write-batcher.ts';
import { countOf, type Outcome } from '../pg-internals.ts';
import { planOf } from '../planner.ts';
import { notifyStatement, PING } from '../postgres.ts';
import { isDivisionByZero } from '../to-store-error.ts';
import { type Lease, mustNotHoldConnection, retried, transact } from '../transaction.ts';
import { EmbeddedEngine, type EmbeddedOptions, listenTo } from './embedded-engine.ts';

export async function openEmbedded(options: EmbeddedOptions): Promise<Database> {
  return new EmbeddedDatabase(await EmbeddedEngine.open(options), new Statements(options.preparedStatements));
}

/**
 * Milliseconds that a unit of the planner's cost takes at least. A sequential scan of a million
 * rows costs some 20,000 and takes 300 ms; but the estimate of a recursive query over tables
 * without statistics is ten times too high, and such a query must not be rejected.
 */
const MS_OF_COST = 0.002;

/** No statement can be cancelled here, so the planner's estimate decides before it runs. Throws `time_limit`. */
async function mustBeCheap(db: Reader, statement: Sql, limitMs: number): Promise<void> {
  const cost = (await planOf(db, statement))['Total Cost'];
  if (cost * MS_OF_COST <= limitMs) return;
  throw new StoreError('time_limit', undefined, new Error(`expected to cost ${cost}`));
}

function timeLimitError(error: unknown): never {
  throw isDivisionByZero(error) ? new StoreError('time_limit', undefined, error) : error;
}

/** Members of the contract are own properties, because callers spread databases. */
class EmbeddedDatabase implements Database {
  readonly kind = 'embedded';
  readonly copyFolder: Database['copyFolder'];
  readonly #engine: EmbeddedEngine;
  readonly #statements: Statements;
  readonly #batcher: WriteBatcher;
  readonly #turns = laneQueue({ places: 1 });
  readonly #slowTurns = laneQueue({ places: 1 });

  constructor(engine: EmbeddedEngine, statements: Statements) {
    this.#engine = engine;
    this.#statements = statements;
    const [lease, alone] = [this.#lease, this.#alone];
    const { history } = statements;
    this.#batcher = new WriteBatcher({ lease, alone, history, connections: 1 });
    if (engine.folder !== undefined) this.copyFolder = (copy) => this.#copy(engine.folder!, copy);
  }

  /** Raises division_by_zero after `ms`; the clock keeps it from being constant-folded. */
  readonly statementInTime = (ms: number): Sql =>
    raw(
      `(clock_timestamp() < statement_timestamp() + interval '${Math.ceil(ms)} ms' OR 1 / (extract(epoch FROM clock_timestamp()) * 0)::int = 1)`,
    );

  readonly replicaFor = (): Reader => this;
  readonly noteWrite = async (): Promise<void> => undefined;

  readonly rows: Database['rows'] = (statement, { lane, limitMs } = {}) =>
    lane === 'slow' || lane === 'query'
      ? this.#slowly(statement, limitMs).catch(timeLimitError)
      : this.#batcher.rows(statement);
  readonly run: Database['run'] = async (statement) => countOf(await this.#alone(statement));
  readonly write: Database['write'] = (statement, target) => this.#batcher.rows(statement, target);
  readonly transaction: Database['transaction'] = (work, options) => transact(this.#lease, work, options);

  readonly listen: Database['listen'] = async (channel, onMessage, onState) => {
    const subscription = { channel, onMessage, onState };
    this.#engine.subscriptions.add(subscription);
    await this.#alone(listenTo(channel));
    onState(true);
    return async () => void this.#engine.subscriptions.delete(subscription);
  };
  readonly notify: Database['notify'] = async (channel, payload) => {
    // Sent alone, because PostgreSQL deduplicates the notifications of a transaction.
    await this.#alone(notifyStatement(channel, payload));
  };
  readonly ping = async (): Promise<void> => {
    await this.rows(PING);
  };

  /** Waits for statements under way. */
  readonly close = async (): Promise<void> => {
    await this.#batcher.close();
    await this.#slowTurns.close();
    await this.#turns.close();
    await this.#engine.close();
  };

  /** Rejects with `unavailable` if the engine has ended and cannot be started again. */
  readonly #lease = async (sliceMs = Number.POSITIVE_INFINITY): Promise<Lease> => {
    const release = await this.#turns.enter(MAX_WAIT_MS);
    const end = performance.now() + sliceMs;
    const { id } = currentCaller();
    try {
      const client = await this.#engine.client();
      return {
        send: (statement) => this.#statements.send(client, statement),
        sendTogether: (all) => this.#statements.sendTogether(client, all),
        release: () => release(),
        mustGiveWay: () => performance.now() > end && this.#turns.hasOthersThan(id),
      };
    } catch (error) {
      release();
      throw error;
    }
  };

  readonly #alone = async (statement: Sql): Promise<Outcome> => {
    mustNotHoldConnection();
    return this.#turns.serve(async () => {
      const client = await this.#engine.client();
      // After a migration, a statement that was prepared before it has to be prepared again.
      return retried(() => this.#statements.send(client, statement));
    });
  };

  /** At most one slow statement is queued for the connection, so a quick one waits for a single slow one. */
  async #slowly(statement: Sql, limitMs: number | undefined): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    if (limitMs !== undefined) await mustBeCheap(this, statement, limitMs);
    return (await this.#slowTurns.serve(() => this.#alone(statement))).rows;
  }

  async #copy(folder: string, copy: (folder: string) => Promise<void>): Promise<void> {
    mustNotHoldConnection();
    const leave = await this.#turns.enter();
    try {
      const client = await this.#engine.client();
      await client.query('CHECKPOINT');
      await copy(folder);
    } finally {
      // The time of a copy is not typical of statements.
      leave(false);
    }
  }
}
