/**
 * Statements that come at the same time, several in one transaction. Alone, each costs a commit, a
 * write to the database's socket and a wake-up of either side, which is more than its own work.
 * Where one fails, nothing of them is committed, and each is sent alone; so is a statement that
 * failed beside others, for some time.
 */
import type { Sql } from '../../sql.ts';
import type { Cells, WriteTarget } from './contract.ts';
import { type Outcome, TogetherError } from './statements.ts';
import { isConnectionLoss, toStoreError } from './to-store-error.ts';
import { type Lease, mustNotHoldConnection } from './transaction.ts';

const MOST_TOGETHER = 32;
/** Milliseconds after which what came meanwhile no longer waits for those under way. */
const PATIENCE_MS = 20;
/** Milliseconds for which a statement that failed beside others goes alone: the first time, and at most. */
const FIRST_PENALTY_MS = 50;
const LAST_PENALTY_MS = 2_000;
const MOST_PENALTIES = 1_000;

export interface GatheredStatementsOptions {
  readonly lease: () => Promise<Lease>;
  readonly alone: (statement: Sql) => Promise<Outcome>;
  /** Transactions at a time. What comes meanwhile makes up the next. */
  readonly mostUnderWay: number;
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
  #underWay = 0;
  /** By the text of the statement; the oldest first. */
  readonly #penalties = new Map<string, Penalty>();

  constructor(options: GatheredStatementsOptions) {
    this.#options = options;
  }

  async rows(statement: Sql, { row = '' }: WriteTarget = {}): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    const { rows } = await (this.#isPenalised(statement)
      ? this.#options.alone(statement)
      : this.#beside(statement, row));
    return rows;
  }

  #beside(statement: Sql, row: string): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statement, row, resolve, reject });
      // Others of this turn of the event loop come with it.
      if (this.#waiting.length === 1) setImmediate(() => this.#sendWaiting());
    });
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0 && this.#underWay < this.#options.mostUnderWay) {
      const together = this.#waiting.splice(0, MOST_TOGETHER);
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
    if (together.length === 1) await settle(first!, this.#options.alone(first!.statement));
    else await this.#sendTogether(together.sort(byRow));
  }

  async #sendTogether(together: readonly Asked[]): Promise<void> {
    const { lease, limits } = this.#options;
    const before = limits === undefined ? [] : [limits];
    let held: Lease | undefined;
    try {
      held = await lease();
      const outcomes = await held.sendTogether([...before, ...together.map(({ statement }) => statement)]);
      held.release(false);
      for (const [i, asked] of together.entries()) asked.resolve(outcomes[before.length + i]!);
      if (this.#penalties.size > 0) for (const { statement } of together) this.#penalties.delete(statement.text);
    } catch (error) {
      const failure = error instanceof TogetherError ? error : undefined;
      // Whether a lost connection committed them is unknown.
      const isUndone = failure !== undefined && !isConnectionLoss(failure.cause);
      held?.release(!isUndone);
      if (!isUndone) {
        for (const asked of together) asked.reject(toStoreError(failure?.cause ?? error));
        return;
      }
      this.#penalise(together[failure.completed - before.length]);
      await Promise.all(together.map((asked) => settle(asked, this.#options.alone(asked.statement))));
    }
  }

  #isPenalised({ text }: Sql): boolean {
    if (this.#penalties.size === 0) return false;
    const penalty = this.#penalties.get(text);
    return penalty !== undefined && penalty.until > performance.now();
  }

  #penalise(culprit: Asked | undefined): void {
    if (culprit === undefined) return;
    const { text } = culprit.statement;
    const before = this.#penalties.get(text);
    const ms = before === undefined ? FIRST_PENALTY_MS : Math.min(2 * before.ms, LAST_PENALTY_MS);
    this.#penalties.delete(text);
    this.#penalties.set(text, { ms, until: performance.now() + ms });
    if (this.#penalties.size > MOST_PENALTIES) this.#penalties.delete(this.#penalties.keys().next().value!);
  }
}

const settle = (asked: Asked, outcome: Promise<Outcome>): Promise<void> => outcome.then(asked.resolve, asked.reject);

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
