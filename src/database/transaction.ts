/** Transactions over one connection, the same on both databases. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { invariant } from '../invariant.ts';
import { raw, type Sql, sql, text } from '../sql.ts';
import { StoreError, type Transaction, type TransactionOptions } from './contract.ts';
import { countOf, type Outcome } from './pg-internals.ts';
import { isConnectionLoss, isTransient, toStoreError } from './to-store-error.ts';

const ATTEMPTS = 4;

/** A connection for one holder until `release`; `release(true)` destroys the connection. */
export interface Lease {
  send(statement: Sql): Promise<Outcome>;
  /** Sends the statements as one transaction, outside another one. Rejects with a `TogetherError`. */
  sendTogether(statements: readonly Sql[]): Promise<readonly Outcome[]>;
  release(destroy: boolean): void;
  /** Given where the holder has the only connection: true once others wait, and the lease has had its slice of time. */
  readonly mustGiveWay?: () => boolean;
}

/** Milliseconds that a transaction may take. */
const LIMIT_MS = 5_000;
/** Milliseconds that it may wait for a lock: some more than PostgreSQL takes to find a deadlock, which is retried. */
const LOCK_LIMIT_MS = 1_200;
/** Milliseconds of the first slice on the only connection. A transaction that gave way gets twice as much next time, up to a limit. */
const SLICE_MS = 50;
const MOST_SLICE_MS = 400;

/** An open transaction takes statements. */
interface Scope {
  open: boolean;
  /** The transaction has had its time, or must give way: nothing of it is committed, whatever its work makes of the error. */
  ended?: Error;
}
const inside = new AsyncLocalStorage<Scope>();

/**
 * INVARIANT: no caller waits for a second connection while holding one: with an exhausted pool, all
 * would wait forever.
 */
export function mustNotHoldConnection(): void {
  invariant(!inside.getStore()?.open, 'inside a transaction, only the transaction itself is asked');
}

const BEGIN = raw('BEGIN');
const COMMIT = raw('COMMIT');
const ROLLBACK = raw('ROLLBACK');
const NO_TIME_LIMIT = raw('SET LOCAL statement_timeout = 0');
const limitsOf = (ms: number): Sql =>
  sql`SELECT set_config('statement_timeout', ${text(String(ms))}, true), set_config('lock_timeout', ${text(String(LOCK_LIMIT_MS))}, true)`;

/** `lease` takes the milliseconds after which the holder of an only connection gives way. */
export async function transact<T>(
  lease: (sliceMs: number) => Promise<Lease>,
  work: (tx: Transaction) => Promise<T>,
  { unlimited = false, limitMs = LIMIT_MS }: TransactionOptions = {},
): Promise<T> {
  mustNotHoldConnection();
  const end = unlimited ? Number.POSITIVE_INFINITY : performance.now() + limitMs;
  for (let sliceMs = unlimited ? Number.POSITIVE_INFINITY : SLICE_MS; ; sliceMs *= 2) {
    const slice = unlimited ? sliceMs : Math.min(sliceMs, MOST_SLICE_MS);
    try {
      return await retried(() => attemptOnce(() => lease(slice), work, { limitMs, end }));
    } catch (error) {
      if (!(error instanceof GaveWay)) throw error;
    }
  }
}

/** Others wait for the only connection, so the transaction was undone, and begins again when it is its turn. */
class GaveWay extends Error {}

interface TransactionTime {
  readonly limitMs: number;
  /** The time by the clock of `performance`; infinite: the transaction may take hours. */
  readonly end: number;
}

/** The connection was lost before anything was done on it. */
class NotBegun extends Error {}

/**
 * Retries errors that a retry can cure; other errors become a StoreError if they are of one of its
 * kinds.
 */
export async function retried<T>(attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      const isCurable = isTransient(error) || error instanceof NotBegun;
      if (count === ATTEMPTS || !isCurable) throw toStoreError(error instanceof NotBegun ? error.cause : error);
      await sleep(Math.random() * 10 * 2 ** count);
    }
  }
}

async function attemptOnce<T>(
  lease: () => Promise<Lease>,
  work: (tx: Transaction) => Promise<T>,
  time: TransactionTime,
): Promise<T> {
  const held = await lease();
  const scope: Scope = { open: true };
  let isClean = false;
  try {
    await held.send(BEGIN).catch((error: unknown) => {
      throw isConnectionLoss(error) ? new NotBegun('the transaction was not begun', { cause: error }) : error;
    });
    if (time.end === Number.POSITIVE_INFINITY) await held.send(NO_TIME_LIMIT);
    else if (held.mustGiveWay === undefined) await held.send(limitsOf(time.limitMs));
    const result = await inside.run(scope, () => work(transactionOn(held, scope, time)));
    if (scope.ended !== undefined) throw scope.ended;
    const { tag } = await held.send(COMMIT);
    isClean = true;
    // PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK and no error.
    invariant(tag === 'COMMIT', 'a transaction ends with its first failed statement');
    return result;
  } catch (error) {
    scope.open = false;
    isClean ||= await held.send(ROLLBACK).then(
      () => true,
      () => false,
    );
    throw error;
  } finally {
    scope.open = false;
    held.release(!isClean);
  }
}

const late = (): StoreError => new StoreError('unavailable', undefined, new Error('the transaction is late'));

function transactionOn(held: Lease, scope: Scope, { end }: TransactionTime): Transaction {
  let last: Promise<unknown> = Promise.resolve();
  // Concurrent statements go one after the other, because a transaction has one connection.
  const ask = (statement: Sql): Promise<Outcome> => {
    const answer = last.then(() => {
      // After a failed statement, the connection may have another holder already.
      invariant(scope.open, 'a transaction that has ended is not asked');
      if (performance.now() > end) scope.ended ??= late();
      else if (held.mustGiveWay?.()) scope.ended ??= new GaveWay('others wait for their turn');
      if (scope.ended !== undefined) throw scope.ended;
      return held.send(statement).catch((error: unknown) => {
        throw toStoreError(error);
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
