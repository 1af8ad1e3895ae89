/**
 * Rate limits: counts attempts by network and by account. All nodes count together, in the shared
 * database. Password checks count only failures, and count each before reporting it: however many
 * run at once, at most as many as the limit learn that a password is right.
 */
import { createHash } from 'node:crypto';
import type { Database } from '../../database/contract.ts';
import { parseString } from '../../policy/values.ts';
import { Problem } from '../../problem.ts';
import { QueuePerKey } from '../../queue-per-key.ts';
import type { Limits, Rate } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { param, sql, text } from '../../sql.ts';
import type { RequestClient } from '../audit-trail.ts';
import { AttemptCounter, LimitReached } from './attempt-counter.ts';
import { networkOf } from './network.ts';

export interface Attempt {
  /** Counts the failure. Throws `rate_limited`, in place of the plain refusal, when it was one too many. */
  failed(): Promise<void>;
  /**
   * Throws `rate_limited` when other attempts reached the limit meanwhile: a correct guess after
   * the limit is rejected too.
   */
  succeeded(): Promise<void>;
}

interface PasswordAttempt extends Attempt {
  /** The account has no attempt left: the work must be that of an unknown account, and fail. */
  readonly isOverLimit: boolean;
}

/** Every method throws `rate_limited`. */
export interface Limiter {
  /** Checks a password in `work`, when the attempts of the client's network allow it. */
  passwordAttempt<T>(email: string, client: RequestClient, work: (attempt: PasswordAttempt) => Promise<T>): Promise<T>;
  /** Checks a code of the user's second factor in `work`, when the attempts of the account allow it. */
  codeAttempt<T>(userId: string, work: (attempt: Attempt) => Promise<T>): Promise<T>;
  register(client: RequestClient, email: string): Promise<void>;
  refresh(client: RequestClient): Promise<void>;
  guest(client: RequestClient): Promise<void>;
  /** Counts a wrong token of a mail, or of a sign-in's first step. Right ones cost nothing: colleagues share an address. */
  wrongToken(client: RequestClient): Promise<void>;
  /** Counts a request for a mail. */
  mail(client: RequestClient): Promise<void>;
  /** Counts a mail to `email` that the client asked for; false: it is one too many, which no answer may reveal. */
  mailTo(email: string, client: RequestClient): Promise<boolean>;
  /** Counts a mail that verifies the address of a user who has signed in, or gave the right password. */
  verification(userId: string): Promise<void>;
  /** Counts an invitation of `principal` to `email`. */
  invite(principal: string, email: string): Promise<void>;
  /** Counts a question about a decision. */
  question(principal: string): Promise<void>;
  prune(): Promise<void>;
}

/** Days for which a login makes a network known to an account. */
const KNOWN_DAYS = 30;
/** Password checks that each network may have under way and waiting on this node. */
const PASSWORD_CHECKS = { running: 4, waiting: 64 };
/** Checks of codes that each account may have under way and waiting on this node. */
const CODE_CHECKS = { running: 1, waiting: 64 };

/** Invitations that a principal may send. */
const INVITATIONS: Rate = { points: 100, window: 3_600 };
/** Questions about decisions that a principal may ask. */
const QUESTIONS: Rate = { points: 10, window: 1 };

/** Wrong codes of second factors that an account may have. Each follows a first step that was passed. */
const CODES: Rate = { points: 50, window: 900 };

const NO_ATTEMPT: PasswordAttempt = { isOverLimit: false, failed: async () => {}, succeeded: async () => {} };
const UNLIMITED: Limiter = {
  passwordAttempt: (_email, _client, work) => work(NO_ATTEMPT),
  codeAttempt: (_userId, work) => work(NO_ATTEMPT),
  register: async () => {},
  refresh: async () => {},
  guest: async () => {},
  wrongToken: async () => {},
  mail: async () => {},
  mailTo: async () => true,
  verification: async () => {},
  invite: async () => {},
  question: async () => {},
  prune: async () => {},
};

export function createLimiter(db: Database, limits: Limits | 'off'): Limiter {
  return limits === 'off' ? UNLIMITED : new DatabaseLimiter(db, limits);
}

/** The counters, with their limits. */
const COUNTERS = {
  'login-account': 'loginAccount',
  'login-pair': 'loginAccount',
  'login-address': 'loginAddress',
  register: 'register',
  'register-account': 'register',
  'register-pair': 'register',
  refresh: 'refresh',
  guest: 'guest',
  reset: 'reset',
  'reset-account': 'reset',
  'reset-pair': 'reset',
  verify: 'reset',
  token: 'reset',
} as const satisfies Readonly<Record<string, keyof Limits>>;
type CounterName = keyof typeof COUNTERS;

class DatabaseLimiter implements Limiter {
  readonly #db: Database;
  readonly #passwordChecks = new QueuePerKey(PASSWORD_CHECKS, tooManyAtOnce);
  readonly #codeChecks = new QueuePerKey(CODE_CHECKS, tooManyAtOnce);
  readonly #counters: Readonly<Record<CounterName, AttemptCounter>>;
  readonly #questions: AttemptCounter;
  readonly #invitations: AttemptCounter;
  readonly #codes: AttemptCounter;

  constructor(db: Database, limits: Limits) {
    this.#db = db;
    const counters = Object.entries(COUNTERS).map(([name, limit]) => [
      name,
      new AttemptCounter(db, name, limits[limit]),
    ]);
    this.#counters = Object.fromEntries(counters);
    this.#invitations = new AttemptCounter(db, 'invite', INVITATIONS);
    this.#codes = new AttemptCounter(db, 'second-factor', CODES);
    this.#questions = new AttemptCounter(db, 'explain', QUESTIONS);
  }

  /**
   * Queues by network: a client that floods an account waits behind itself. Each failure counts for the network, for the
   * account, and for both together. Strangers must not lock the owner out, so the count of the account does not stop a
   * right password from a network that the account was used from. Nothing else may differ there: a neighbor of the owner
   * would learn that the account exists.
   */
  passwordAttempt<T>(email: string, client: RequestClient, work: (attempt: PasswordAttempt) => Promise<T>): Promise<T> {
    const { 'login-address': networks, 'login-account': accounts, 'login-pair': pairs } = this.#counters;
    const network = networkOf(client.ip);
    const account = digest(normalEmail(email));
    const pair = pairOf(account, network);
    const check = async (): Promise<void> => {
      await networks.check(network);
      await pairs.check(pair);
    };
    return this.#passwordChecks.run(network, async () => {
      await check();
      const isReached = await accounts.isReached(account);
      const isKnown = await this.#cameFrom(email, client);
      return work({
        isOverLimit: isReached && !isKnown,
        failed: () => firstRejection([networks.spend(network), accounts.spend(account), pairs.spend(pair)]),
        succeeded: async () => {
          await check();
          if (!isKnown) await accounts.check(account);
        },
      });
    });
  }

  codeAttempt<T>(userId: string, work: (attempt: Attempt) => Promise<T>): Promise<T> {
    // Codes that arrive at once would all be checked before the first of them is counted. The limit is looked up
    // after the check alone, which costs a hash: each outcome does so.
    return this.#codeChecks.run(userId, () =>
      work({
        failed: async () => void (await this.#codes.spend(userId)),
        succeeded: () => this.#codes.check(userId),
      }),
    );
  }

  async register(client: RequestClient, email: string): Promise<void> {
    const network = networkOf(client.ip);
    await this.#counters.register.spend(network);
    const account = digest(normalEmail(email));
    await spendShare(this.#counters['register-account'], account, {
      pair: pairOf(account, network),
      counter: this.#counters['register-pair'],
    });
  }

  async refresh(client: RequestClient): Promise<void> {
    await this.#counters.refresh.spend(networkOf(client.ip));
  }

  async guest(client: RequestClient): Promise<void> {
    await this.#counters.guest.spend(networkOf(client.ip));
  }

  async wrongToken(client: RequestClient): Promise<void> {
    await this.#counters.token.spend(networkOf(client.ip));
  }

  async verification(userId: string): Promise<void> {
    await this.#counters.verify.spend(userId);
  }

  async mail(client: RequestClient): Promise<void> {
    await this.#counters.reset.spend(networkOf(client.ip));
  }

  /**
   * Limits mails to one mailbox for all unknown networks together, so that many networks cannot
   * flood it. Each network uses up at most half of that, so that a stranger cannot keep the owner
   * from asking; a known network uses none of it.
   */
  async mailTo(email: string, client: RequestClient): Promise<boolean> {
    if (await this.#cameFrom(email, client)) return true;
    const account = digest(normalEmail(email));
    const pair = pairOf(account, networkOf(client.ip));
    try {
      await spendShare(this.#counters['reset-account'], account, { pair, counter: this.#counters['reset-pair'] });
      return true;
    } catch (error) {
      if (error instanceof LimitReached) return false;
      throw error;
    }
  }

  async invite(principal: string, email: string): Promise<void> {
    await this.#invitations.spend(principal);
    await this.#counters['reset-account'].spend(digest(normalEmail(email)));
  }

  async question(principal: string): Promise<void> {
    await this.#questions.spend(principal);
  }

  async prune(): Promise<void> {
    await this.#db.run(sql`DELETE FROM "_auth_limits" WHERE expire < ${param('int8', Date.now())}`);
  }

  async #cameFrom(email: string, { ip }: RequestClient): Promise<boolean> {
    if (ip === undefined || parseString(email) === undefined) return false;
    const rows = await this.#db.rows(sql`
      SELECT 1
        FROM "_auth_audit" e
        JOIN "users" u ON u.id = e.user_id
       WHERE u.email = ${text(normalEmail(email))}
         AND e.event IN ('login', 'oauth_login', 'passkey_login')
         AND e.ip = ${text(ip)}
         AND e.at > now() - ${param('float8', KNOWN_DAYS)} * interval '1 day'
       LIMIT 1`);
    return rows.length > 0;
  }
}

/** A key of ASCII characters: PostgreSQL rejects some strings. */
const digest = (value: string): string => createHash('sha256').update(value).digest('base64url').slice(0, 32);
const pairOf = (account: string, network: string): string => `${account}@${digest(network)}`;

interface NetworkShare {
  /** The account and the network. */
  readonly pair: string;
  readonly counter: AttemptCounter;
}

/** Counts for `key`. A network uses up half of its attempts at most. */
async function spendShare(counter: AttemptCounter, key: string, share: NetworkShare): Promise<void> {
  const spent = await share.counter.spend(share.pair);
  if (spent <= Math.ceil(counter.points / 2)) await counter.spend(key);
  else await counter.check(key);
}

async function firstRejection(promises: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(promises)) if (outcome.status === 'rejected') throw outcome.reason;
}

const tooManyAtOnce = (): Problem => new Problem('rate_limited', 'too many attempts at once; try again in 1 s');
