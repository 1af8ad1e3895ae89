/** Transactions over one connection, the same on both databases. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { invariant } from '../invariant.ts';
import { raw, type Sql } from '../sql.ts';
import { succeeds } from '../thrown.ts';
import { StoreError, type Transaction, type TransactionOptions } from './contract.ts';
import { countOf, type Outcome } from './pg-internals.ts';
import { isConnectionLoss, isTransient, throwStoreError, toStoreError } from './to-store-error.ts';

const MOST_RUNS = 4;

/** A connection for one holder until `release`; `release(true)` destroys the connection. */
export interface Lease {
  /** Sends several statements as one transaction, outside another one. Resolves with the outcome of the last. */
  send(...statements: readonly Sql[]): Promise<Outcome>;
  /** The same, for the outcomes of all. Rejects with a `TogetherError`. */
  sendTogether(statements: readonly Sql[]): Promise<readonly Outcome[]>;
  release(destroy: boolean): void;
  /** Given where the holder has the only connection: true once others wait, and the lease has had its slice of time. */
  readonly mustGiveWay?: () => boolean;
}

/** Milliseconds that a transaction may take. */
const LIMIT_MS = 5_000;
/** Milliseconds of the first turn on the only connection. Each later turn has four times as much, up to a limit. */
const SLICE_MS = 50;
const MOST_SLICE_MS = 400;

const BEGIN = raw('BEGIN');
const COMMIT = raw('COMMIT');
const ROLLBACK = raw('ROLLBACK');
/** The settings end with the transaction, so they work through poolers. */
const NO_LIMITS = [raw('SET LOCAL statement_timeout = 0'), raw('SET LOCAL lock_timeout = 0')];

/** The state of one attempt at a transaction. */
interface AttemptState {
  /** Sent with the first statement. */
  readonly opening: Sql[];
  /** A time of the clock of `performance`. */
  readonly end: number;
  /** The transaction takes statements. */
  isOpen: boolean;
  /** The transaction is late, or must give way. It commits nothing, even if its work catches this error. */
  ended?: Error;
}
const inside = new AsyncLocalStorage<AttemptState>();

/**
 * INVARIANT: no caller waits for a second connection while holding one: with an exhausted pool, all would wait forever.
 */
export function mustNotHoldConnection(): void {
  if (inside.getStore()?.isOpen) throw new Error('inside a transaction, only the transaction itself is asked');
}

/** The turn of a transaction on an only connection. */
export interface Turn {
  /** Milliseconds after which the holder gives way. */
  readonly sliceMs: number;
  /** `resumed`: the transaction has had a turn before. */
  readonly pace: 'unknown' | 'resumed';
}

export async function transact<T>(
  lease: (turn: Turn) => Promise<Lease>,
  work: (tx: Transaction) => Promise<T>,
  { unlimited = false, limitMs = LIMIT_MS }: TransactionOptions = {},
): Promise<T> {
  mustNotHoldConnection();
  const limits = unlimited ? NO_LIMITS : [raw(`SET LOCAL statement_timeout = ${Math.ceil(limitMs)}`)];
  const end = performance.now() + (unlimited ? Number.POSITIVE_INFINITY : limitMs);
  let turn: Turn = { sliceMs: unlimited ? Number.POSITIVE_INFINITY : SLICE_MS, pace: 'unknown' };
  return retried(async () => {
    const held = await lease(turn);
    if (!unlimited) turn = { sliceMs: Math.min(4 * turn.sliceMs, MOST_SLICE_MS), pace: 'resumed' };
    // The only connection is the embedded engine's, which interrupts no statement.
    return attemptOnce(held, work, { opening: held.mustGiveWay ? [BEGIN] : [BEGIN, ...limits], end, isOpen: true });
  });
}

/** Others wait for the only connection, so the transaction was undone, and begins again when it is its turn. */
class GaveWay extends Error {}

/** The connection was lost with the first statement of a transaction. */
class NotBegun extends StoreError {}

/** Retries errors that a retry can cure; other errors become a StoreError if they are of one of its kinds. */
export async function retried<T>(attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof GaveWay) continue;
      if (count === MOST_RUNS || !(isTransient(error) || error instanceof NotBegun)) throw toStoreError(error);
      await sleep(Math.random() * 10 * 2 ** count++);
    }
  }
}

async function attemptOnce<T>(held: Lease, work: (tx: Transaction) => Promise<T>, attempt: AttemptState): Promise<T> {
  let isClean = false;
  try {
    const result = await inside.run(attempt, () => work(transactionOn(held, attempt)));
    if (attempt.ended !== undefined) throw attempt.ended;
    const tag = attempt.opening.length > 0 ? 'COMMIT' : (await held.send(COMMIT)).tag;
    isClean = true;
    // PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK and no error.
    invariant(tag === 'COMMIT', 'a transaction ends with its first failed statement');
    return result;
  } catch (error) {
    attempt.isOpen = false;
    isClean ||= attempt.opening.length > 0 || (await succeeds(held.send(ROLLBACK)));
    throw error;
  } finally {
    attempt.isOpen = false;
    held.release(!isClean);
  }
}

function transactionOn(held: Lease, attempt: AttemptState): Transaction {
  let last: Promise<unknown> = Promise.resolve();
  // Concurrent statements go one after the other, because a transaction has one connection.
  const ask = (statement: Sql): Promise<Outcome> => {
    const answer = last.then(() => {
      // After a failed statement, the connection may have another holder already.
      invariant(attempt.isOpen, 'a transaction that has ended is not asked');
      if (performance.now() > attempt.end)
        attempt.ended ??= new StoreError('unavailable', new Error('the transaction is late'));
      else if (held.mustGiveWay?.()) attempt.ended ??= new GaveWay('others wait for their turn');
      if (attempt.ended !== undefined) throw attempt.ended;
      const opening = attempt.opening.splice(0);
      // A text without parameters may hold several commands, and goes alone.
      const isAlone = statement.params.length === 0 && opening.length > 0;
      const sent = isAlone ? held.send(...opening).then(() => held.send(statement)) : held.send(...opening, statement);
      return sent.catch((error: unknown) => {
        if (opening.length > 0 && isConnectionLoss(error)) attempt.ended ??= new NotBegun('unavailable', error);
        return throwStoreError(attempt.ended ?? error);
      });
    });
    last = answer.catch(() => undefined);
    return answer;
  };
  return {
    inTransaction: true,
    rows: async (statement) => (await ask(statement)).rows,
    run: async (statement) => countOf(await ask(statement)),
  };
}
