/**
 * Batches concurrent writes: several statements share a transaction. Alone, each costs a commit, a write to the
 * database's socket and a wake-up of both sides, which is more than its own work. If a statement fails, nothing of the
 * batch is committed, and each is sent alone; the statement that failed is sent alone for some time.
 */
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, StoreError, type WriteTarget } from '../contract.ts';
import { type Outcome, TogetherError } from '../pg-internals.ts';
import { isStalePlan, toStoreError } from '../to-store-error.ts';
import { type Lease, mustNotHoldConnection } from '../transaction.ts';
import type { StatementHistory } from './statements.ts';

const MOST_TOGETHER = 32;
/** Statements under way at a time, over all transactions, as long as connections are free. */
const MOST_UNDER_WAY = 64;
/** Milliseconds after which the next batch starts beside the pending one. */
const PATIENCE_MS = 20;
/**
 * A batch that takes so many milliseconds more than the shortest, which wait for disk and network,
 * halves the batch size.
 */
const LONG_MS = 30;
/** The rate at which the time of the shortest batch follows longer ones. */
const RISE = 0.1;
/** Milliseconds until a rejected caller may try again. */
const REJECTED_RETRY_MS = 1_000;

export interface WriteBatcherOptions {
  readonly lease: () => Promise<Lease>;
  readonly alone: (statement: Sql) => Promise<Outcome>;
  readonly history: StatementHistory;
  readonly connections: number;
  /** Statements that may wait for their answers; another one is rejected with `QueueFull`. */
  readonly mostUnanswered: number;
  /** Sent before the others: limits for the transaction. */
  readonly limits?: Sql;
}

interface Asked {
  readonly statement: Sql;
  readonly row: string;
  resolve(outcome: Outcome | PromiseLike<Outcome>): void;
  reject(error: unknown): void;
}

/** A batch that was answered. */
interface Answered {
  /** Statements. */
  readonly count: number;
  /** Milliseconds. */
  readonly took: number;
  readonly hasWritten: boolean;
}

export class WriteBatcher {
  readonly #options: WriteBatcherOptions;
  #waiting: Asked[] = [];
  /** Transactions. */
  #underWay = 0;
  /** The size of the next batch: halved by a batch that fails or is long, and grown by any other full batch. */
  #mostTogether = MOST_TOGETHER;
  /** Milliseconds of the shortest transactions that stored something. */
  #shortest = 0;
  /** Accepted, and not answered. */
  #unanswered = 0;
  readonly #allAnswered = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(options: WriteBatcherOptions) {
    this.#options = options;
  }

  async rows(statement: Sql, { row = '' }: WriteTarget = {}): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    if (this.#isClosed) throw new StoreError('unavailable', undefined, new Error('the database is closed'));
    if (this.#unanswered >= this.#options.mostUnanswered) throw new QueueFull(REJECTED_RETRY_MS);
    this.#unanswered++;
    try {
      const { rows } = await (this.#options.history.isPenalised(statement.text)
        ? this.#options.alone(statement)
        : this.#beside(statement, row));
      return rows;
    } finally {
      this.#unanswered--;
      if (this.#isClosed && this.#unanswered === 0) this.#allAnswered.resolve();
    }
  }

  /** Rejects later statements, and waits for the answers to earlier ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#unanswered > 0) await this.#allAnswered.promise;
  }

  #beside(statement: Sql, row: string): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statement, row, resolve, reject });
      // Other statements of this turn of the event loop join the batch.
      if (this.#waiting.length === 1) setImmediate(() => this.#sendWaiting());
    });
  }

  /** Large batches need few transactions. */
  get #mostTransactions(): number {
    return Math.min(this.#options.connections, Math.ceil(MOST_UNDER_WAY / this.#mostTogether));
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0 && this.#underWay < this.#mostTransactions) {
      const together = this.#waiting.splice(0, this.#mostTogether);
      this.#underWay++;
      const end = once(() => {
        this.#underWay--;
        this.#sendWaiting();
      });
      const late = setTimeout(end, PATIENCE_MS);
      void this.#send(together).then(() => {
        clearTimeout(late);
        end();
      });
    }
  }

  async #send(together: Asked[]): Promise<void> {
    const [first] = together;
    if (together.length > 1) await this.#sendTogether(together.sort(byRow));
    else {
      const since = performance.now();
      const hasWritten = await this.#sendAlone(first!);
      this.#adjust({ count: 1, took: performance.now() - since, hasWritten });
    }
  }

  /** Returns true if the statement has written. */
  async #sendAlone({ statement, resolve, reject }: Asked): Promise<boolean> {
    try {
      const outcome = await this.#options.alone(statement);
      resolve(outcome);
      return outcome.hasWritten;
    } catch (error) {
      reject(error);
      return false;
    }
  }

  async #sendTogether(together: readonly Asked[]): Promise<void> {
    const { lease, limits, history } = this.#options;
    const held = await lease().catch((error: unknown) => {
      for (const { reject } of together) reject(toStoreError(error));
    });
    if (held === undefined) return;
    const before = limits === undefined ? [] : [limits];
    const since = performance.now();
    try {
      const outcomes = await held.sendTogether([...before, ...together.map(({ statement }) => statement)]);
      held.release(false);
      const hasWritten = outcomes.some((outcome) => outcome.hasWritten);
      this.#adjust({ count: together.length, took: performance.now() - since, hasWritten });
      for (const [i, asked] of together.entries()) asked.resolve(outcomes[before.length + i]!);
    } catch (error) {
      this.#halve();
      const { cause, completed, isUndone } = error instanceof TogetherError ? error : unknown(error);
      held.release(!isUndone || isStalePlan(cause));
      const culprit = together[completed - before.length];
      if (culprit !== undefined) history.penalise(culprit.statement.text);
      if (isUndone) {
        for (const asked of together) void this.#sendAlone(asked);
      } else for (const { reject } of together) reject(new StoreError('unavailable', undefined, cause));
    }
  }

  /** A batch that writes nothing does not wait for the disk, so its time does not count as a commit's. */
  #adjust({ count, took, hasWritten }: Answered): void {
    const isLong = count > 1 && took - this.#shortest > LONG_MS;
    const share = took < this.#shortest ? 1 : RISE;
    if (hasWritten) this.#shortest += share * (took - this.#shortest);
    if (isLong) this.#halve();
    else if (count >= this.#mostTogether) this.#mostTogether = Math.min(MOST_TOGETHER, this.#mostTogether + 1);
  }

  #halve(): void {
    this.#mostTogether = Math.max(1, this.#mostTogether >> 1);
  }
}

const unknown = (cause: unknown) => ({ cause, completed: 0, isUndone: false });

/** Rows are locked in one order everywhere, so that two transactions do not wait for each other. */
const byRow = (a: Asked, b: Asked): number => (a.row < b.row ? -1 : a.row > b.row ? 1 : 0);

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}
