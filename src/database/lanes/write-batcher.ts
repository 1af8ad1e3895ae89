/**
 * Statements that come at the same time, several in one transaction. Alone, each costs a commit, a
 * write to the database's socket and a wake-up of either side, which is more than its own work.
 * Where one fails, nothing of them is committed, and each is sent alone; so is a statement that
 * failed beside others, for some time.
 */
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, StoreError, type WriteTarget } from '../contract.ts';
import { type Outcome, TogetherError } from '../pg-internals.ts';
import { isStalePlan, toStoreError } from '../to-store-error.ts';
import { type Lease, mustNotHoldConnection } from '../transaction.ts';
import type { StatementHistory } from './statement-history.ts';

const MOST_TOGETHER = 32;
/** Statements under way at a time, over all transactions, as long as there are connections. */
const MOST_UNDER_WAY = 64;
/** Milliseconds after which what came meanwhile no longer waits for those under way. */
const PATIENCE_MS = 20;
/**
 * Milliseconds that a transaction may take more than the shortest do, which wait for the disk and the network: above it, the next
 * has fewer statements, because what is quick is answered with what is not.
 */
const LONG_MS = 30;
/** How fast the time of the shortest follows longer ones. */
const RISE = 0.1;
/** Milliseconds until one that is refused may try again. */
const RETRY_MS = 1_000;

export interface WriteBatcherOptions {
  readonly lease: () => Promise<Lease>;
  readonly alone: (statement: Sql) => Promise<Outcome>;
  readonly history: StatementHistory;
  readonly connections: number;
  /** Statements that may wait for their answers; one more is refused with `QueueFull`. */
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

/** A transaction. */
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
  /** In the next transaction: halved by one that fails or is long, and one more after any other that was full. */
  #mostTogether = MOST_TOGETHER;
  /** Milliseconds that the shortest transactions with something to store take. */
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
    if (this.#unanswered >= this.#options.mostUnanswered) throw new QueueFull(RETRY_MS);
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

  /** Refuses what is asked from now on, and waits for the answers to what was asked before. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#unanswered > 0) await this.#allAnswered.promise;
  }

  #beside(statement: Sql, row: string): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statement, row, resolve, reject });
      // Others of this turn of the event loop come with it.
      if (this.#waiting.length === 1) setImmediate(() => this.#sendWaiting());
    });
  }

  /** Few where each takes many statements. */
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

  /** Whether it has written. */
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

  /** What writes nothing waits for no disk, so it says nothing of how long that takes. */
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

/** In one order everywhere, so that two transactions do not wait for each other's rows. */
const byRow = (a: Asked, b: Asked): number => (a.row < b.row ? -1 : a.row > b.row ? 1 : 0);

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}
