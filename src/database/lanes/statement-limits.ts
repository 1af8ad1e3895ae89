/**
 * Time limits of single statements, which PostgreSQL itself enforces. A session keeps its limit, so
 * that a statement pays for one only where the limit differs from that of the statement before it.
 * Through a pooler, which gives each transaction any session, the limit ends with its transaction.
 */
import type { Sql } from '../../sql.ts';
import type { PooledLease } from './lease-pool.ts';
import type { Outcome } from './statements.ts';

/** The factor by which a limit may be exceeded, where that saves setting it again. */
const SLACK = 1.05;

interface LimitsOptions {
  /** Of a session as it begins. Milliseconds. */
  readonly usual: number;
  readonly isPooled: boolean;
}

export class StatementLimits {
  readonly #options: LimitsOptions;
  /** Those that differ from the usual one. */
  readonly #bySession = new WeakMap<object, number>();

  constructor(options: LimitsOptions) {
    this.#options = options;
  }

  /** @param limit milliseconds */
  send(lease: PooledLease, statement: Sql, limit: number): Promise<Outcome> {
    const { usual, isPooled } = this.#options;
    const current = this.#bySession.get(lease.session) ?? usual;
    if (current >= limit && current <= limit * SLACK) return lease.send(statement);
    const ms = Math.ceil(limit);
    if (isPooled) return inTransaction(lease, statement, ms);
    this.#bySession.set(lease.session, ms);
    return together(lease.command(`SET statement_timeout = ${ms}`), lease.send(statement));
  }
}

/** The COMMIT of a transaction that failed rolls it back. */
function inTransaction(lease: PooledLease, statement: Sql, ms: number): Promise<Outcome> {
  const begun = lease.command(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${ms}`);
  return together(begun, lease.send(statement), lease.command('COMMIT'));
}

/** Sent at once, so that what stands around the statement costs no round trip. */
async function together(before: Promise<unknown>, sent: Promise<Outcome>, after?: Promise<unknown>): Promise<Outcome> {
  const [first, answer, last] = await Promise.allSettled([before, sent, after]);
  if (first.status === 'rejected') throw first.reason;
  if (answer.status === 'rejected') throw answer.reason;
  if (last.status === 'rejected') throw last.reason;
  return answer.value;
}
