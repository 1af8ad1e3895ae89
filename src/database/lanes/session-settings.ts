import type pg from 'pg';
import type { Sql } from '../../sql.ts';
import type { AnyClient, Outcome } from '../pg-internals.ts';
import { TIME_LIMIT_MS } from '../server-url.ts';
import type { Lease } from '../transaction.ts';

/** The factor by which a limit may be exceeded, where that saves setting it again. */
const LIMIT_SLACK = 1.05;

/** `generic`: one plan for all values of a statement. */
export type Plan = 'generic' | undefined;

/**
 * Settings that single statements need, and PostgreSQL enforces. A session keeps them, so that a
 * statement pays for a SET only if it needs another value than the statement before it. A pooler
 * gives each transaction any session, so a limit ends with its transaction there, and plans are its
 * own.
 */
export class SessionSettings {
  readonly #isPooled: boolean;
  /** Limits that differ from the usual one, and plans from PostgreSQL's choice. */
  readonly #limits = new WeakMap<AnyClient, number>();
  readonly #plans = new WeakMap<AnyClient, Plan>();

  constructor(isPooled: boolean) {
    this.#isPooled = isPooled;
  }

  /** Sent without waiting for the answer: a connection that fails here fails the next statement as well. */
  setPlan(client: AnyClient, plan: Plan): void {
    if (this.#isPooled || this.#plans.get(client) === plan) return;
    this.#plans.set(client, plan);
    set(client, `plan_cache_mode = ${plan === undefined ? 'auto' : 'force_generic_plan'}`);
  }

  /** @param limit milliseconds */
  sendWithin(lease: Lease & { readonly client: AnyClient }, statement: Sql, limit: number): Promise<Outcome> {
    const current = this.#limits.get(lease.client) ?? TIME_LIMIT_MS;
    if (current >= limit && current <= limit * LIMIT_SLACK) return lease.send(statement);
    const ms = Math.ceil(limit);
    if (this.#isPooled) return inTransaction(lease, statement, ms);
    this.#limits.set(lease.client, ms);
    set(lease.client, `statement_timeout = ${ms}`);
    return lease.send(statement);
  }
}

function set(client: AnyClient, setting: string): void {
  (client as pg.ClientBase).query(`SET ${setting}`).catch(() => undefined);
}

/** Sent at once, so that the limit costs no round trip. The COMMIT of a transaction that failed rolls it back. */
async function inTransaction(lease: Lease, statement: Sql, ms: number): Promise<Outcome> {
  const begun = lease.command(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${ms}`);
  const [first, answer, last] = await Promise.allSettled([begun, lease.send(statement), lease.command('COMMIT')]);
  if (first.status === 'rejected') throw first.reason;
  if (answer.status === 'rejected') throw answer.reason;
  if (last.status === 'rejected') throw last.reason;
  return answer.value;
}
