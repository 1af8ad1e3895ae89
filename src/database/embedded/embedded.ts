/**
 * PostgreSQL inside this process (PGlite), in a thread: a single connection, on which statements
 * and transactions take turns.
 */
import { type Leave, MAX_WAIT_MS } from '../../fair-queue.ts';
import { invariant } from '../../invariant.ts';
import { currentCaller } from '../../queued-caller.ts';
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

/** Milliseconds of the first turn of a read that checks its time, and of its second one while several callers ask. */
const READ_SLICE_MS = 400;
const MOST_READ_SLICE_MS = 800;
const SLICE_SETTING = 'bylaw.slice';
/** Milliseconds for which a caller who had a turn may come again. */
const SHARED_MS = 5_000;
/** Milliseconds of a turn that others may be held up for at any time, and of the longest rest after a longer one. */
const SHORT_TURN_MS = 50;
const MOST_REST_MS = 2_000;

/** `quick`: statements that are known to be quick, and batches of them. `resumed`: a transaction that has given way. */
type Pace = 'quick' | 'unknown' | 'slow' | 'resumed';

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
  readonly #slow = laneQueue({ places: 1, dropsLeft: true });
  readonly #resumed = laneQueue({ places: 1, dropsLeft: true });
  readonly #queues = [this.#slow, this.#resumed, this.#turns];

  constructor(engine: EmbeddedEngine, statements: Statements) {
    this.#engine = engine;
    this.#statements = statements;
    const { history } = statements;
    this.#batcher = new WriteBatcher({ lease: this.#lease, alone: this.#alone, history, connections: 1 });
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
      : options.lane !== 'estimate' && this.#statements.history.speedOf(statement.text) === 'quick'
        ? this.#batcher.rows(statement)
        : this.#rowsAlone(statement);
  readonly run: Database['run'] = async (statement) => countOf(await this.#alone(statement, 'unknown'));
  readonly write: Database['write'] = (statement, target) => {
    invariant(target?.first === undefined, 'one connection runs writes in turn');
    return this.#statements.history.speedOf(statement.text) === 'slow'
      ? this.#rowsAlone(statement)
      : this.#batcher.rows(statement, target);
  };
  readonly transaction: Database['transaction'] = (work, options) => transact(this.#lease, work, options);

  readonly listen: Database['listen'] = async (subscription) => {
    this.#engine.subscriptions.add(subscription);
    await this.#alone(listenTo(subscription.channel), 'unknown');
    subscription.onState(true);
    return async () => void this.#engine.subscriptions.delete(subscription);
  };
  /** Sent alone, because PostgreSQL deduplicates the notifications of a transaction. */
  readonly notify: Database['notify'] = (channel, payload) => this.#alone(notifyStatement(channel, payload), 'unknown');
  readonly ping: Database['ping'] = () => this.rows(PING);

  /** Waits for statements under way. */
  readonly close = async (): Promise<void> => {
    for (const each of [this.#batcher, ...this.#queues, this.#engine]) await each.close();
  };

  /**
   * Rejects with `unavailable` if the engine has ended and cannot be started again. A batch of writes has no turn: it
   * takes a few statements, and gives way to nothing.
   */
  readonly #lease = async (turn?: Turn): Promise<Lease> => {
    const { client, end } = await this.#enter(turn?.pace ?? 'quick', MAX_WAIT_MS);
    const sliceEnd = performance.now() + (turn?.sliceMs ?? Number.POSITIVE_INFINITY);
    const { id } = currentCaller();
    return {
      send: (...all) => this.#statements.send(client, ...all),
      sendTogether: (all) => this.#statements.sendTogether(client, all),
      release: () => end(),
      mustGiveWay: () => performance.now() > sliceEnd && this.#haveOthersThan(id),
    };
  };

  async #rowsAlone(statement: Sql, pace: Pace = 'unknown', sliceMs?: number): Promise<readonly Cells[]> {
    return (await this.#alone(statement, pace, sliceMs)).rows;
  }

  /** @param sliceMs the milliseconds of a read that checks its time */
  readonly #alone = async (statement: Sql, pace: Pace = 'quick', sliceMs = READ_SLICE_MS): Promise<Outcome> => {
    mustNotHoldConnection();
    const settings = sliceMs === READ_SLICE_MS ? [] : [settingOf(sliceMs)];
    const { client, end } = await this.#enter(pace);
    const since = performance.now();
    let hasFailed = true;
    try {
      // After a migration, a statement that was prepared before it has to be prepared again.
      const outcome = await retried(() => this.#statements.send(client, ...settings, statement));
      hasFailed = false;
      return outcome;
    } finally {
      this.#statements.history.noteAnswer(statement.text, performance.now() - since, { hasFailed });
      end();
    }
  };

  /**
   * No statement can be cancelled here, so the planner's estimate decides before it runs. A read that checks its time is
   * undone at the end of its slice, and begins again once: with all of its time if one caller asks alone. Throws
   * `time_limit`.
   */
  async #rowsInTime(statement: Sql, { lane, limitMs }: ReadOptions): Promise<readonly Cells[]> {
    const speed = lane === 'query' ? this.#statements.history.speedOf(statement.text) : 'slow';
    let pace: Pace = speed === 'quick' ? 'unknown' : 'slow';
    if (pace === 'slow' && limitMs !== undefined) {
      const cost = (await planOf({ rows: (each) => this.#rowsAlone(each) }, statement))['Total Cost'];
      if (cost * MS_OF_COST > limitMs) throw new StoreError('time_limit', new Error(`expected to cost ${cost}`));
      if (speed === 'unknown' && cost * MS_OF_COST <= QUICK_QUERY_MS) pace = 'unknown';
    }
    const allMs = Math.ceil(limitMs ?? MAX_WAIT_MS);
    try {
      return await this.#rowsAlone(statement, pace, Math.min(READ_SLICE_MS, allMs));
    } catch (error) {
      if (!isDivisionByZero(error) || allMs <= READ_SLICE_MS) throw error;
    }
    const isShared = performance.now() - this.#turns.soleSince < SHARED_MS;
    const sliceMs = Math.min(allMs - READ_SLICE_MS, isShared ? MOST_READ_SLICE_MS : Number.POSITIVE_INFINITY);
    return this.#rowsAlone(statement, 'slow', sliceMs);
  }

  /**
   * Callers take turns; slow statements have one turn between them, and so have transactions that have given way, so
   * that any read waits for one of each. A caller whose turn was not short and has held up others gets no other one for
   * as long, except for statements known to be quick. Resolves with the engine, which the caller holds until `end`.
   */
  async #enter(pace: Pace, patienceMs = Number.POSITIVE_INFINITY) {
    const caller = currentCaller();
    const shared = pace === 'slow' ? this.#slow : pace === 'resumed' ? this.#resumed : undefined;
    const rests = pace !== 'quick';
    const held: Leave[] = [];
    let since = Number.POSITIVE_INFINITY;
    const end: Leave = (isTypical) => {
      const took = performance.now() - since;
      if (rests && !caller.isKept && took > SHORT_TURN_MS && this.#haveOthersThan(caller.id))
        for (const queue of this.#queues) queue.rest(caller.id, Math.min(took, MOST_REST_MS));
      for (const leave of held) leave(isTypical);
    };
    try {
      if (shared !== undefined) held.push(await shared.enter(patienceMs));
      held.unshift(this.#turns.enterAtOnce(caller, rests) ?? (await this.#turns.enter(patienceMs, rests)));
      const client = await this.#engine.client();
      since = performance.now();
      return { client, end };
    } catch (error) {
      end();
      throw error;
    }
  }

  #haveOthersThan(id: string): boolean {
    return this.#queues.some((queue) => queue.hasOthersThan(id));
  }

  async #copy(folder: string, copy: (folder: string) => Promise<void>): Promise<void> {
    mustNotHoldConnection();
    const { client, end } = await this.#enter('quick');
    try {
      await client.query('CHECKPOINT');
      await copy(folder);
    } finally {
      // The time of a copy is not typical of statements.
      end(false);
    }
  }
}
