/** The lanes for writes and transactions of one server. */
import { raw, type Sql, sql } from '../../sql.ts';
import type { Cells, Queryable, WriteTarget } from '../contract.ts';
import { countOf, type Outcome } from '../pg-internals.ts';
import { type Lease, mustNotHoldConnection, retried } from '../transaction.ts';
import type { LeasePool } from './lease-pool.ts';
import type { Plan, StatementHistory } from './statements.ts';
import { WriteBatcher } from './write-batcher.ts';

const CONNECTIONS = 16;
const MOST_UNANSWERED = 1_000;

/** Limits of a batch: slow statements are retried alone. Settings of the transaction work through poolers. */
const BATCH_LIMITS = raw("SELECT set_config('lock_timeout', '20', true), set_config('statement_timeout', '20', true)");

export class Writes {
  readonly #pool: LeasePool;
  readonly #batcher: WriteBatcher;
  #triggered: ReadonlySet<string> = new Set();

  constructor(pool: (size: number) => LeasePool, history: StatementHistory, connections = CONNECTIONS) {
    this.#pool = pool(connections);
    this.#batcher = new WriteBatcher({
      lease: () => this.lease(),
      alone: (statement) => this.#alone(statement),
      history,
      connections,
      mostUnanswered: MOST_UNANSWERED,
      limits: BATCH_LIMITS,
    });
  }

  lease(isUnlimited = false): Promise<Lease> {
    return this.#pool.lease({ isUnlimited });
  }

  async run(statement: Sql): Promise<number> {
    return countOf(await this.#alone(statement));
  }

  async write(statement: Sql, target: WriteTarget = {}): Promise<readonly Cells[]> {
    // The write of one record needs no other plan for other values.
    if (target.isDivided) return (await this.#alone(statement, 'generic')).rows;
    if (target.table !== undefined && this.#triggered.has(target.table)) return (await this.#alone(statement)).rows;
    return this.#batcher.rows(statement, target);
  }

  /**
   * Finds the adopted tables whose writes may reach a trigger, also over rules, partitions and
   * foreign keys; the service makes no triggers. A trigger may rely on the borders of transactions,
   * so each such write gets its own.
   */
  async findTriggers(q: Pick<Queryable, 'rows'>): Promise<void> {
    const rows = await q.rows(sql`
      SELECT c.relname
        FROM (
          WITH RECURSIVE triggered AS (
            SELECT id
              FROM (
                SELECT tgrelid AS id
                  FROM pg_trigger
                 WHERE NOT tgisinternal
                 UNION
                SELECT ev_class
                  FROM pg_rewrite
                 WHERE ev_type <> '1'
              ) AS own
             UNION
            SELECT edge.to_id
              FROM triggered AS t
              JOIN (
                SELECT conrelid AS from_id, confrelid AS to_id
                  FROM pg_constraint
                 WHERE contype = 'f'
                   AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
                 UNION ALL
                SELECT inhrelid, inhparent
                  FROM pg_inherits
              ) AS edge ON edge.from_id = t.id
          )
          SELECT id FROM triggered
        ) AS t
        JOIN pg_class AS c ON c.oid = t.id
       WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema()))`);
    this.#triggered = new Set(rows.map(([name]) => name!));
  }

  async close(): Promise<void> {
    await this.#batcher.close();
    await this.#pool.close();
  }

  async #alone(statement: Sql, plan?: Plan): Promise<Outcome> {
    mustNotHoldConnection();
    return retried(() => this.#pool.send(statement, { plan }));
  }
}
