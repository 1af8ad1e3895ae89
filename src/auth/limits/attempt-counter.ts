/** Limits attempts per key and window; rate-limiter-flexible counts them in the shared database. */
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { BoundedMap } from '../../bounded-map.ts';
import type { Database } from '../../database/contract.ts';
import { Problem } from '../../problem.ts';
import type { Rate } from '../../schema/model/model.ts';
import { join, param, raw, type Sql, sql } from '../../sql.ts';

const COUNTER_TABLE = '_auth_limits';
/** Keys that a counter remembers as reported. */
const MAX_REPORTED = 10_000;

/** Thrown by a counter; `first`: this node did not report this key in this window before. */
export class LimitReached extends Problem {
  readonly limit: string;
  readonly first: boolean;
  constructor(limit: string, first: boolean, headers: Readonly<Record<string, string>>) {
    super('rate_limited', `too many attempts; try again in ${headers['Retry-After']} s`, { headers });
    this.limit = limit;
    this.first = first;
  }
}

export class AttemptCounter {
  readonly points: number;
  readonly #name: string;
  readonly #window: number;
  readonly #limiter: RateLimiterPostgres;
  /** The keys whose refusals were reported, with the end of their window. */
  readonly #reported = new BoundedMap<string, number>(MAX_REPORTED);

  constructor(db: Database, name: string, { points, window }: Rate) {
    this.points = points;
    this.#name = name;
    this.#window = window;
    this.#limiter = new RateLimiterPostgres({
      storeClient: limiterClient(db),
      storeType: 'client',
      tableName: COUNTER_TABLE,
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: name,
      points,
      duration: window,
    });
  }

  /** Throws LimitReached when no attempt is left. */
  async check(key: string): Promise<void> {
    const state = await this.#spentState(key);
    if (state !== undefined) throw this.#reached(key, state);
  }

  /** As `check`, for a limit that is not reported. */
  async isReached(key: string): Promise<boolean> {
    return (await this.#spentState(key)) !== undefined;
  }

  /** Returns how many attempts are spent now. Throws LimitReached when this was one too many. */
  async spend(key: string): Promise<number> {
    try {
      return (await this.#limiter.consume(key)).consumedPoints;
    } catch (error) {
      throw error instanceof RateLimiterRes ? this.#reached(key, error) : error;
    }
  }

  async #spentState(key: string): Promise<RateLimiterRes | undefined> {
    const state = await this.#limiter.get(key);
    return state !== null && state.consumedPoints >= this.points ? state : undefined;
  }

  /** Headers: draft-ietf-httpapi-ratelimit-headers-10. */
  #reached(key: string, { msBeforeNext }: RateLimiterRes): LimitReached {
    const now = Date.now();
    const isFirst = (this.#reported.get(key) ?? 0) <= now;
    if (isFirst) this.#reported.set(key, now + msBeforeNext);
    const wait = Math.max(1, Math.ceil(msBeforeNext / 1000));
    return new LimitReached(this.#name, isFirst, {
      'Retry-After': String(wait),
      'RateLimit-Policy': `"${this.#name}";q=${this.points};w=${this.#window}`,
      RateLimit: `"${this.#name}";r=0;t=${wait}`,
    });
  }
}

interface LimiterStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Imitates a client of `pg` for the limiter, and runs its statements on the database. */
function limiterClient(db: Database) {
  return {
    async query({ text: statementText, values }: LimiterStatement) {
      const statement = toSql(statementText, values);
      if (statementText.trimStart().startsWith('DELETE')) return { rowCount: await db.run(statement), rows: [] };
      const isRead = statementText.trimStart().startsWith('SELECT');
      const cells = await (isRead
        ? db.rows(statement, { lane: 'urgent' })
        : db.write(statement, { row: String(values[0]) }));
      const rows = cells.map(([points, expire]) => ({ points: Number(points), expire: Number(expire) }));
      return { rowCount: rows.length, rows };
    },
  };
}

/** `statement`: a constant text of the limiter, with `$n` for strings and ints. */
function toSql(statement: string, values: readonly unknown[]): Sql {
  const parts = statement.split(/\$(\d+)/);
  return join(
    parts.map((part, i) => (i % 2 === 0 ? raw(part) : paramOfValue(values[Number(part) - 1]))),
    '',
  );
}

const paramOfValue = (value: unknown): Sql => sql`${param(typeof value === 'string' ? 'text' : 'int8', value)}`;
