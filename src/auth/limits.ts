/**
 * How often somebody may try, counted on the shared database (rate-limiter-flexible), so that all nodes count together.
 * Logins count failures only, and count them before they are told: however many attempts run at once, no more than the limit learn anything.
 */
import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { Problem } from '../problem.ts';
import type { Limits, Rate } from '../schema/model.ts';
import { Param, param, Sql, type SqlType, sql } from '../sql.ts';
import type { Database } from '../store/database/contract.ts';
import type { Client } from './audit.ts';
import { normalEmail } from './users.ts';

export interface Attempt {
  /** Counts; throws `rate_limited` in the place of the plain refusal when that was one too many. */
  failed(): Promise<void>;
  /** Throws `rate_limited` when others have used up the attempts meanwhile: a right guess among too many is not told either. */
  succeeded(): Promise<void>;
}

/** Every method throws `rate_limited`. */
export interface Limiter {
  login(email: string, client: Client): Promise<Attempt>;
  register(client: Client): Promise<void>;
  refresh(client: Client): Promise<void>;
  /** `email`, where a mail would go out: so that nobody's mailbox is flooded from many addresses. */
  reset(client: Client, email?: string): Promise<void>;
  prune(): Promise<void>;
}

const TABLE = '_auth_limits';
/** A login from an address that this account came from in so many days is counted apart, so that strangers cannot lock its owner out. */
const KNOWN_DAYS = 30;

const NO_ATTEMPT: Attempt = { failed: async () => {}, succeeded: async () => {} };
const UNLIMITED: Limiter = {
  login: async () => NO_ATTEMPT,
  register: async () => {},
  refresh: async () => {},
  reset: async () => {},
  prune: async () => {},
};

export function createLimiter(db: Database, limits: Limits | 'off'): Limiter {
  if (limits === 'off') return UNLIMITED;
  const counter = (name: string, rate: Rate): Counter => new Counter(db, name, rate);
  const account = counter('login-account', limits.loginAccount);
  const known = counter('login-known', limits.loginAccount);
  const address = counter('login-address', limits.loginAddress);
  const register = counter('register', limits.register);
  const refresh = counter('refresh', limits.refresh);
  const reset = counter('reset', limits.reset);
  const resetAccount = counter('reset-account', limits.reset);

  return {
    async login(email, client) {
      const own = digest(normalEmail(email));
      const place = placeOf(client);
      await address.check(place);
      const isKnown = await cameFrom(db, email, client);
      const [counted, key] = isKnown ? ([known, `${own}@${digest(place)}`] as const) : ([account, own] as const);
      await counted.check(key);
      return {
        async failed() {
          const outcomes = await Promise.allSettled([address.spend(place), counted.spend(key)]);
          for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
        },
        async succeeded() {
          await address.check(place);
          await counted.check(key);
        },
      };
    },
    register: (client) => register.spend(placeOf(client)),
    refresh: (client) => refresh.spend(placeOf(client)),
    async reset(client, email) {
      await reset.spend(placeOf(client));
      if (email !== undefined) await resetAccount.spend(digest(normalEmail(email)));
    },
    async prune() {
      await db.run(sql`DELETE FROM "_auth_limits" WHERE expire < ${param('int8', Date.now())}`);
    },
  };
}

class Counter {
  readonly #limiter: RateLimiterPostgres;
  readonly #name: string;
  readonly #rate: Rate;

  constructor(db: Database, name: string, rate: Rate) {
    this.#name = name;
    this.#rate = rate;
    this.#limiter = new RateLimiterPostgres({
      storeClient: clientOf(db),
      storeType: 'client',
      tableName: TABLE,
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: name,
      points: rate.points,
      duration: rate.window,
    });
  }
  async check(key: string): Promise<void> {
    const over = this.#over(await this.#limiter.get(key));
    if (over !== undefined) throw this.#refusal(over);
  }
  async spend(key: string): Promise<void> {
    try {
      await this.#limiter.consume(key);
    } catch (error) {
      throw error instanceof RateLimiterRes ? this.#refusal(error) : error;
    }
  }
  #over(state: RateLimiterRes | null): RateLimiterRes | undefined {
    return state !== null && state.consumedPoints >= this.#rate.points ? state : undefined;
  }
  /** Headers: draft-ietf-httpapi-ratelimit-headers-10. */
  #refusal(state: RateLimiterRes): Problem {
    const seconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000));
    return new Problem('rate_limited', `too many attempts; try again in ${seconds} s`, {
      headers: {
        'Retry-After': String(seconds),
        'RateLimit-Policy': `"${this.#name}";q=${this.#rate.points};w=${this.#rate.window}`,
        RateLimit: `"${this.#name}";r=0;t=${seconds}`,
      },
    });
  }
}

async function cameFrom(db: Database, email: string, client: Client): Promise<boolean> {
  if (client.ip === undefined) return false;
  const rows = await db.rows(
    sql`SELECT 1 FROM "_auth_audit" e JOIN "users" u ON u.id = e.user_id WHERE u.email = ${param('text', normalEmail(email))} AND e.event IN ('login', 'oauth_login') AND e.ip = ${param('text', client.ip)} AND e.at > now() - ${param('float8', KNOWN_DAYS)} * interval '1 day' LIMIT 1`,
  );
  return rows.length > 0;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 32);

/** Of an IPv6 address the half that a customer of a provider has as a whole. */
export function placeOf({ ip = 'unknown' }: Client): string {
  return isIPv6(ip)
    ? new URL(`http://[${ip.split('%')[0]}]`).hostname.slice(1, -1).split('::')[0]!.split(':').slice(0, 4).join(':')
    : ip;
}

/** What the limiter takes for a connection of `pg`: its statements, whose parameters are text, number, number, number, run on the store. */
function clientOf(db: Database) {
  return {
    async query({ text, values }: { readonly text: string; readonly values: readonly unknown[] }) {
      const statement = toSql(text, values);
      if (text.trimStart().startsWith('DELETE')) return { rowCount: await db.run(statement), rows: [] };
      const rows = (await db.rows(statement)).map(([points, expire]) => ({
        points: Number(points),
        expire: Number(expire),
      }));
      return { rowCount: rows.length, rows };
    },
  };
}

/** `$n` of the limiter's own, constant texts. */
function toSql(text: string, values: readonly unknown[]): Sql {
  const parts = text.split(/\$(\d+)/);
  const chunks = parts.filter((_, i) => i % 2 === 0);
  const params = parts
    .filter((_, i) => i % 2 === 1)
    .map((number) => {
      const value = values[Number(number) - 1];
      const type: SqlType = typeof value === 'string' ? 'text' : 'int8';
      return new Param(type, value);
    });
  return new Sql(chunks, params);
}
