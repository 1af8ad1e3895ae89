/**
 * Statements that come at the same time, several in one transaction. Alone, each costs a commit, a
 * write to the database's socket and a wake-up of either side, which is more than its own work.
 * Where one fails, nothing of them is committed, and each is sent alone; so is a statement that
 * failed beside others, for some time.
 */
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, StoreError, type WriteTarget } from './contract.ts';
import { type Outcome, TogetherError } from './statements.ts';
import { toStoreError } from './to-store-error.ts';
import { type Lease, mustNotHoldConnection } from './transaction.ts';

const MOST_TOGETHER = 32;
/** Statements under way at a time, over all transactions, as long as there are connections. */
const MOST_UNDER_WAY = 64;
/** Milliseconds after which what came meanwhile no longer waits for those under way. */
const PATIENCE_MS = 20;
/** Milliseconds of a transaction, above which the next has fewer statements: what is quick is answered with what is not. */
const LONG_MS = 30;
/** Milliseconds until one that is refused may try again. */
const RETRY_MS = 1_000;
/** Milliseconds for which a statement that failed beside others goes alone: the first time, and at most. */
const FIRST_PENALTY_MS = 50;
const LAST_PENALTY_MS = 2_000;
const MOST_PENALTIES = 1_000;

export interface GatheredStatementsOptions {
  readonly lease: () => Promise<Lease>;
  readonly alone: (statement: Sql) => Promise<Outcome>;
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

interface Penalty {
  readonly ms: number;
  readonly until: number;
}

export class GatheredStatements {
  readonly #options: GatheredStatementsOptions;
  #waiting: Asked[] = [];
  /** Transactions. */
  #underWay = 0;
  /** In the next transaction: halved by one that fails or is long, and one more after any other that was full. */
  #mostTogether = MOST_TOGETHER;
  /** Accepted, and not answered. */
  #unanswered = 0;
  #onAnswered: (() => void) | undefined;
  #isClosed = false;
  /** By the text of the statement; the oldest first. */
  readonly #penalties = new Map<string, Penalty>();

  constructor(options: GatheredStatementsOptions) {
    this.#options = options;
  }

  async rows(statement: Sql, { row = '' }: WriteTarget = {}): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    if (this.#isClosed) throw new StoreError('unavailable', undefined, new Error('the database is closed'));
    if (this.#unanswered >= this.#options.mostUnanswered) throw new QueueFull(RETRY_MS);
    this.#unanswered++;
    try {
      const { rows } = await (this.#isPenalised(statement)
        ? this.#options.alone(statement)
        : this.#beside(statement, row));
      return rows;
    } finally {
      this.#unanswered--;
      if (this.#unanswered === 0) this.#onAnswered?.();
    }
  }

  /** Refuses what is asked from now on, and waits for the answers to what was asked before. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#unanswered > 0) await new Promise<void>((resolve) => (this.#onAnswered = resolve));
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
    const since = performance.now();
    const isFull = together.length >= this.#mostTogether;
    const [first] = together;
    const isWhole =
      together.length === 1 ? await this.#sendAlone(first!) : await this.#sendTogether(together.sort(byRow));
    const isLong = performance.now() - since > LONG_MS;
    if (!isWhole || (isLong && together.length > 1)) this.#mostTogether = Math.max(1, this.#mostTogether >> 1);
    else if (isFull && !isLong) this.#mostTogether = Math.min(MOST_TOGETHER, this.#mostTogether + 1);
  }

  /** True, also for one that fails: nothing failed with it. */
  async #sendAlone({ statement, resolve, reject }: Asked): Promise<boolean> {
    await this.#options.alone(statement).then(resolve, reject);
    return true;
  }

  async #sendTogether(together: readonly Asked[]): Promise<boolean> {
    const { lease, limits } = this.#options;
    const before = limits === undefined ? [] : [limits];
    let held: Lease | undefined;
    try {
      held = await lease();
      const outcomes = await held.sendTogether([...before, ...together.map(({ statement }) => statement)]);
      held.release(false);
      for (const [i, asked] of together.entries()) asked.resolve(outcomes[before.length + i]!);
      return true;
    } catch (error) {
      const failure = error instanceof TogetherError ? error : undefined;
      const isUndone = failure?.isUndone === true;
      held?.release(!isUndone);
      if (isUndone) {
        this.#penalise(together[failure.completed - before.length]);
        for (const asked of together) void this.#sendAlone(asked);
      } else for (const asked of together) asked.reject(toStoreError(failure?.cause ?? error));
      return false;
    }
  }

  #isPenalised({ text }: Sql): boolean {
    if (this.#penalties.size === 0) return false;
    const penalty = this.#penalties.get(text);
    return penalty !== undefined && penalty.until > performance.now();
  }

  /** Twice as long as the last time, if that was not long ago. */
  #penalise(culprit: Asked | undefined): void {
    if (culprit === undefined) return;
    const { text } = culprit.statement;
    const before = this.#penalties.get(text);
    const now = performance.now();
    const isRecent = before !== undefined && now < before.until + before.ms;
    const ms = isRecent ? Math.min(2 * before.ms, LAST_PENALTY_MS) : FIRST_PENALTY_MS;
    this.#penalties.delete(text);
    this.#penalties.set(text, { ms, until: now + ms });
    if (this.#penalties.size > MOST_PENALTIES) this.#penalties.delete(this.#penalties.keys().next().value!);
  }
}

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
