/**
 * Batches concurrent writes: several statements share a transaction. Alone, each costs a commit, a write to the
 * database's socket and a wake-up of both sides, which is more than its own work. If a statement fails, nothing of the
 * batch is committed, and each is sent alone; the statement that failed is sent alone for some time.
 */
import { asCaller, currentCaller, type QueuedCaller } from '../../queued-caller.ts';
import type { Sql } from '../../sql.ts';
import { type Cells, StoreError, type WriteTarget } from '../contract.ts';
import type { Outcome, TogetherError } from '../pg-internals.ts';
import { toStoreError } from '../to-store-error.ts';
import { type Lease, mustNotHoldConnection } from '../transaction.ts';
import { laneQueue } from './queue.ts';
import type { StatementHistory } from './statements.ts';

const MOST_TOGETHER = 32;
/** Statements under way at a time, over all transactions, as long as connections are free. */
const MOST_UNDER_WAY = 64;
/** Milliseconds after which the next batch starts beside the pending one. */
const PATIENCE_MS = 20;
/** A batch that takes longer halves the batch size. */
const LONG_MS = 50;

export interface WriteBatcherOptions {
  readonly lease: () => Promise<Lease>;
  readonly alone: (statement: Sql) => Promise<Outcome>;
  readonly history: StatementHistory;
  readonly connections: number;
  /** Sent before the others: limits for the transaction. */
  readonly limits?: Sql;
}

interface OpenWrite {
  readonly statement: Sql;
  readonly row: string;
  readonly caller: QueuedCaller;
  resolve(outcome: Outcome | PromiseLike<Outcome>): void;
  reject(error: unknown): void;
}

export class WriteBatcher {
  readonly #options: WriteBatcherOptions;
  readonly #queue = laneQueue({ places: 2 * MOST_UNDER_WAY });
  #waiting: OpenWrite[] = [];
  /** Transactions. */
  #underWay = 0;
  /** The size of the next batch: halved by a batch that fails or is long, and grown by any other full batch. */
  #mostTogether = MOST_TOGETHER;

  constructor(options: WriteBatcherOptions) {
    this.#options = options;
  }

  async rows(statement: Sql, { row = '' }: WriteTarget = {}): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    const isAlone = this.#options.history.isPenalised(statement.text);
    return this.#queue.serve(
      async () => (await (isAlone ? this.#options.alone(statement) : this.#beside(statement, row))).rows,
    );
  }

  /** Rejects later statements, and waits for the answers to earlier ones. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  #beside(statement: Sql, row: string): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statement, row, caller: currentCaller(), resolve, reject });
      // Other statements of this turn of the event loop join the batch.
      if (this.#waiting.length === 1) setImmediate(() => this.#sendWaiting());
    });
  }

  #sendWaiting(): void {
    // Large batches need few transactions.
    const most = Math.min(this.#options.connections, Math.ceil(MOST_UNDER_WAY / this.#mostTogether));
    while (this.#waiting.length > 0 && this.#underWay < most) {
      const sent = this.#send(this.#waiting.splice(0, this.#mostTogether));
      this.#underWay++;
      void Promise.race([sent, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]).then(() => {
        this.#underWay--;
        this.#sendWaiting();
      });
    }
  }

  async #send(together: OpenWrite[]): Promise<void> {
    const isFull = together.length >= this.#mostTogether;
    const { isGood, undone } =
      together.length > 1 ? await this.#sendTogether(together.sort(byRow)) : { isGood: true, undone: together };
    if (!isGood) this.#mostTogether = Math.max(1, this.#mostTogether >> 1);
    else if (isFull) this.#mostTogether = Math.min(MOST_TOGETHER, this.#mostTogether + 1);
    const { alone, connections } = this.#options;
    // Statements in a batch have no turns: on a single connection, few are between the queue and their answer.
    if (connections === 1) this.#queue.places = 2 * this.#mostTogether;
    await Promise.all(
      undone.map(({ statement, caller, resolve, reject }) =>
        asCaller(caller, () => alone(statement)).then(resolve, reject),
      ),
    );
  }

  /** `isGood` unless the batch failed, or took long; `undone`: the statements to be sent alone. */
  async #sendTogether(together: readonly OpenWrite[]): Promise<{ isGood: boolean; undone: readonly OpenWrite[] }> {
    const { lease, limits, history } = this.#options;
    const held = await asCaller(batchCallerOf(together), lease).catch((error: unknown) => {
      for (const { reject } of together) reject(toStoreError(error));
    });
    if (held === undefined) return { isGood: true, undone: [] };
    const before = limits === undefined ? [] : [limits];
    const since = performance.now();
    try {
      const outcomes = await held.sendTogether([...before, ...together.map(({ statement }) => statement)]);
      held.release(false);
      for (const [i, asked] of together.entries()) asked.resolve(outcomes[before.length + i]!);
      return { isGood: performance.now() - since <= LONG_MS, undone: [] };
    } catch (error) {
      const { cause, completed, isUndone } = error as TogetherError;
      held.release(!isUndone);
      const culprit = together[completed - before.length];
      if (culprit !== undefined) history.penalise(culprit.statement.text, culprit.caller);
      if (!isUndone) for (const { reject } of together) reject(new StoreError('unavailable', cause));
      return { isGood: false, undone: isUndone ? together : [] };
    }
  }
}

/** Statements of several callers wait as one more caller: none of them waits behind the other work of another. */
function batchCallerOf(together: readonly OpenWrite[]): QueuedCaller {
  const [{ caller: first }] = together as readonly [OpenWrite];
  if (together.every(({ caller }) => caller.id === first.id)) return first;
  return together.find(({ caller }) => caller.isKept)?.caller ?? { id: 'several', isKept: false };
}

/** Rows are locked in one order everywhere, so that two transactions do not wait for each other. */
const byRow = (a: OpenWrite, b: OpenWrite): number => (a.row < b.row ? -1 : a.row > b.row ? 1 : 0);
