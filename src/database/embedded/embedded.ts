/**
 * PostgreSQL inside this process (PGlite), in a thread: a single connection, on which statements
 * and transactions take turns.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BoundedMap } from '../../bounded-map.ts';
import { currentCaller } from '../../caller.ts';
import { type FairQueue, type Leave, MAX_WAIT_MS } from '../../fair-queue.ts';
import { raw, type Sql, sql, text } from '../../sql.ts';
import { type Cells, type Database, type Reader, type ReadOptions, StoreError } from '../contract.ts';
import { laneQueue } from '../lanes/queue.ts';
import { Statements } from '../lanes/statements.ts';
import { WriteBatcher } from '../lanes/write-batcher.ts';
import { countOf, type Outcome } from '../pg-internals.ts';
import { planOf } from '../planner.ts';
import { notifyStatement, PING } from '../postgres.ts';
import { isDivisionByZero } from '../to-store-error.ts';
import { type Lease, mustNotHoldConnection, retried, type Turn, transact } from '../transaction.ts';
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
/** Milliseconds up to which a query of unknown speed is expected to be quick. */
const QUICK_QUERY_MS = 10;

/** Milliseconds of the first turn of a read that checks its time, and of its later ones while several callers ask. */
const READ_SLICE_MS = 400;
const MOST_READ_SLICE_MS = 800;
const SLICE_SETTING = 'bylaw.slice';
/** Milliseconds for which a caller who had a turn may come again. */
const SHARED_MS = 5_000;
/** Callers whose rests are remembered. */
const MOST_RESTING = 1_000;

const settingOf = (sliceMs: number): Sql =>
  sql`SELECT set_config(${text(SLICE_SETTING)}, ${text(`${sliceMs} ms`)}, true)`;

function timeLimitError(error: unknown): never {
  throw isDivisionByZero(error) ? new StoreError('time_limit', error) : error;
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
  /** A separate queue: a short transaction that has given way does not wait for the slow statements of others. */
  readonly #longTurns = laneQueue({ places: 1 });
  /** The ends of the rests of callers whose slow work has held up others, by their ids. */
  readonly #restEnds = new BoundedMap<string, number>(MOST_RESTING);

  /** The caller of the last turn, and the time of their first one after another caller's. */
  #last = { id: '', since: Number.NEGATIVE_INFINITY };

  constructor(engine: EmbeddedEngine, statements: Statements) {
    this.#engine = engine;
    this.#statements = statements;
    const [lease, alone] = [this.#lease, this.#alone];
    const { history } = statements;
    this.#batcher = new WriteBatcher({ lease, alone, history, connections: 1 });
    if (engine.folder !== undefined) this.copyFolder = (copy) => this.#copy(engine.folder!, copy);
  }

  /** Raises division_by_zero once the statement has had its slice; the clock keeps it from being constant-folded. */
  readonly statementInTime = raw(
    `(clock_timestamp() < (SELECT statement_timestamp() + coalesce(nullif(current_setting('${SLICE_SETTING}', true), ''),
      '${READ_SLICE_MS} ms')::interval) OR 1 / (extract(epoch FROM clock_timestamp()) * 0)::int = 1)`,
  );

  readonly replicaFor = (): Reader => this;
  readonly noteWrite = async (): Promise<void> => undefined;

  readonly rows: Database['rows'] = (statement, options = {}) =>
    options.lane === 'slow' || options.lane === 'query'
      ? this.#rowsInTime(statement, options).catch(timeLimitError)
      : this.#batcher.rows(statement);
  readonly run: Database['run'] = async (statement) => countOf(await this.#alone(statement));
  readonly write: Database['write'] = (statement, target) => this.#batcher.rows(statement, target);
  readonly transaction: Database['transaction'] = (work, options) => transact(this.#lease, work, options);

  readonly listen: Database['listen'] = async (subscription) => {
    this.#engine.subscriptions.add(subscription);
    await this.#alone(listenTo(subscription.channel));
    subscription.onState(true);
    return async () => void this.#engine.subscriptions.delete(subscription);
  };
  /** Sent alone, because PostgreSQL deduplicates the notifications of a transaction. */
  readonly notify: Database['notify'] = (channel, payload) => this.#alone(notifyStatement(channel, payload));
  readonly ping: Database['ping'] = () => this.rows(PING);

  /** Waits for statements under way. */
  readonly close = async (): Promise<void> => {
    const all = [this.#batcher, this.#slowTurns, this.#longTurns, this.#turns, this.#engine];
    for (const each of all) await each.close();
  };

  /**
   * Rejects with `unavailable` if the engine has ended and cannot be started again. A batch of writes has no turn: it
   * takes a few statements, and gives way to nothing.
   */
  readonly #lease = async (turn?: Turn): Promise<Lease> => {
    const leave = await (turn?.isRepeated
      ? this.#enterSlowTurn(this.#longTurns, MAX_WAIT_MS)
      : this.#turns.enter(MAX_WAIT_MS));
    const end = performance.now() + (turn?.sliceMs ?? Number.POSITIVE_INFINITY);
    const { id } = currentCaller();
    if (id !== this.#last.id) this.#last = { id, since: performance.now() };
    try {
      const client = await this.#engine.client();
      return {
        send: (...all) => this.#statements.send(client, ...all),
        sendTogether: (all) => this.#statements.sendTogether(client, all),
        release: () => leave(),
        mustGiveWay: () => performance.now() > end && this.#turns.hasOthersThan(id),
      };
    } catch (error) {
      leave();
      throw error;
    }
  };

  /** @param sliceMs the milliseconds of a read that checks its time */
  readonly #alone = async (statement: Sql, isSlow = false, sliceMs = READ_SLICE_MS): Promise<Outcome> => {
    mustNotHoldConnection();
    const settings = sliceMs === READ_SLICE_MS ? [] : [settingOf(sliceMs)];
    const leave = await (isSlow ? this.#enterSlowTurn(this.#slowTurns) : this.#turns.enter());
    const { id } = currentCaller();
    if (id !== this.#last.id) this.#last = { id, since: performance.now() };
    try {
      const client = await this.#engine.client();
      const since = performance.now();
      let hasFailed = true;
      try {
        // After a migration, a statement that was prepared before it has to be prepared again.
        const outcome = await retried(() => this.#statements.send(client, ...settings, statement));
        hasFailed = false;
        return outcome;
      } finally {
        this.#statements.history.noteAnswer(statement.text, performance.now() - since, { hasFailed });
      }
    } finally {
      leave();
    }
  };

  /**
   * No statement can be cancelled here, so the planner's estimate decides before it runs. A read that checks its time is
   * undone at the end of its slice, and begins again: with all of its time if one caller asks alone. Throws `time_limit`.
   */
  async #rowsInTime(statement: Sql, { lane, limitMs }: ReadOptions): Promise<readonly Cells[]> {
    const speed = lane === 'query' ? this.#statements.history.speedOf(statement.text) : 'slow';
    let isQuick = speed === 'quick';
    if (!isQuick && limitMs !== undefined) {
      const cost = (await planOf({ rows: async (each) => (await this.#alone(each)).rows }, statement))['Total Cost'];
      if (cost * MS_OF_COST > limitMs) throw new StoreError('time_limit', new Error(`expected to cost ${cost}`));
      isQuick = speed === 'unknown' && cost * MS_OF_COST <= QUICK_QUERY_MS;
    }
    let leftMs = limitMs ?? MAX_WAIT_MS;
    for (let sliceMs = READ_SLICE_MS; ; isQuick = false) {
      sliceMs = Math.ceil(Math.min(sliceMs, leftMs));
      try {
        return (await this.#alone(statement, !isQuick, sliceMs)).rows;
      } catch (error) {
        leftMs -= sliceMs;
        if (!isDivisionByZero(error) || leftMs <= 0) throw error;
        const isShared = performance.now() - this.#last.since < SHARED_MS;
        sliceMs = isShared ? MOST_READ_SLICE_MS : leftMs;
      }
    }
  }

  /**
   * The queue of the connection has one slow statement and one transaction that has given way at a time. Its caller rests
   * for as long as it has held up others, so that a request of several statements waits for a single one of each, however
   * many another caller sends.
   */
  async #enterSlowTurn(queue: FairQueue, patienceMs = Number.POSITIVE_INFINITY): Promise<Leave> {
    const { id } = currentCaller();
    const end = performance.now() + patienceMs;
    const restMs = (): number => (this.#restEnds.get(id) ?? 0) - performance.now();
    let leaveQueue = await queue.enter(patienceMs);
    while (restMs() > 0) {
      leaveQueue(false);
      await sleep(restMs());
      leaveQueue = await queue.enter(end - performance.now());
    }
    const since = performance.now();
    const leave = await this.#turns.enter(patienceMs).catch((error: unknown) => {
      leaveQueue();
      throw error;
    });
    return () => {
      const now = performance.now();
      if (this.#turns.hasOthersThan(id) || queue.hasOthersThan(id)) this.#restEnds.set(id, now + (now - since));
      leave();
      leaveQueue();
    };
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
