import { createHash } from 'node:crypto';
import { BoundedMap } from '../../bounded-map.ts';
import type { Sql } from '../../sql.ts';
import { type AnyClient, type Outcome, StatementBatch, TogetherError } from '../pg-internals.ts';
import { isStalePlan } from '../to-store-error.ts';

/** Prepared statements that a connection keeps. Each costs PostgreSQL some 30 kB there. */
const MOST_PREPARED = 256;

/**
 * Executions after which PostgreSQL may keep one plan for all values of a prepared statement (its documentation of
 * PREPARE).
 */
const PLANNED_TIMES = 5;

/** Milliseconds up to which an answer counts as quick. */
const QUICK_MS = 10;
/** Quick answers in a row that make a statement quick. */
const TRIALS = 3;
/** Milliseconds of the moving average above which a statement is slow. */
const SLOW_MS = 25;
/** The weight of the last answer in the moving average: one pause of the program decides nothing. */
const WEIGHT = 0.3;
/** Milliseconds for which a statement that failed in a batch is sent alone: the first time, and at most. */
const FIRST_PENALTY_MS = 50;
const LAST_PENALTY_MS = 2_000;
const MOST_TEXTS = 2_000;

/** `unknown`: too few answers yet, or neither quick nor slow. */
type Speed = 'quick' | 'unknown' | 'slow';

interface Entry {
  /** Given with the second use, so that texts sent once displace no prepared statement. */
  name: string | undefined;
  quickInARow: number;
  /** Milliseconds. */
  average: number;
  /** Milliseconds, and the time when they end. */
  penalty: { readonly ms: number; readonly until: number } | undefined;
}

/**
 * Sends the statements of one server, over all its connections: prepared under a name from the second use of a text on,
 * parameters and cells as text.
 */
export class Statements {
  readonly history = new StatementHistory();
  readonly #mostPrepared: number;
  readonly #prepared = new WeakMap<AnyClient, PreparedNames>();

  /** @param mostPrepared 0: nothing is prepared, because a pooler lends connections. */
  constructor(mostPrepared = MOST_PREPARED) {
    this.#mostPrepared = mostPrepared;
  }

  /** Never throws: a value that cannot be encoded fails only its own statement. */
  async send(client: AnyClient, statement: Sql): Promise<Outcome> {
    try {
      const [outcome] = await this.sendTogether(client, [statement]);
      return outcome!;
    } catch (error) {
      throw error instanceof TogetherError ? error.cause : error;
    }
  }

  /** Sends the statements as one transaction. Rejects with a `TogetherError`. */
  async sendTogether(client: AnyClient, statements: readonly Sql[]): Promise<readonly Outcome[]> {
    const named = statements.map((statement) => ({ statement, name: this.#nameOf(statement.text) }));
    const { outcomes } = client.query(new StatementBatch(named, this.#preparedOn(client)));
    try {
      return await outcomes;
    } catch (error) {
      const { cause, completed } = error as TogetherError;
      const failed = named[completed];
      if (failed?.name !== undefined && isStalePlan(cause)) this.history.renew(failed.statement.text, failed.name);
      throw error;
    }
  }

  #nameOf(text: string): string | undefined {
    return this.#mostPrepared === 0 ? undefined : this.history.nameOf(text);
  }

  #preparedOn(client: AnyClient): PreparedNames {
    let names = this.#prepared.get(client);
    if (names === undefined) {
      names = new PreparedNames(this.#mostPrepared);
      this.#prepared.set(client, names);
    }
    return names;
  }
}

/** The memory of the statements of one server, by their text. */
export class StatementHistory {
  readonly #entries = new BoundedMap<string, Entry>(MOST_TEXTS);
  #renewals = 0;

  /** The name to prepare the statement under; undefined at its first use. */
  nameOf(text: string): string | undefined {
    const known = this.#entries.get(text);
    if (known === undefined) this.#entryOf(text);
    else known.name ??= hashOf(text);
    return known?.name;
  }

  /**
   * After a migration that changed the result of the statement. Under another name, every connection prepares it again,
   * also connections that have the former one.
   */
  renew(text: string, name: string): void {
    const entry = this.#entryOf(text);
    if (entry.name === name) entry.name = `${hashOf(text)}_${++this.#renewals}`;
  }

  speedOf(text: string): Speed {
    const { quickInARow = 0, average = 0 } = this.#entries.get(text) ?? {};
    return quickInARow >= TRIALS ? 'quick' : average > SLOW_MS ? 'slow' : 'unknown';
  }

  /** @param took milliseconds that the server needed, a share of them for a statement of a group. */
  noteAnswer(text: string, took: number): void {
    const entry = this.#entryOf(text);
    entry.average += (took - entry.average) * WEIGHT;
    if (took <= QUICK_MS) entry.quickInARow++;
    else if (entry.quickInARow < TRIALS || entry.average > QUICK_MS) entry.quickInARow = 0;
  }

  /** A statement that fails is sent alone, until it has been quick again. */
  noteFailure(text: string): void {
    this.#entryOf(text).quickInARow = 0;
  }

  /** Returns true while the statement is to be written alone. */
  isPenalised(text: string): boolean {
    const until = this.#entries.get(text)?.penalty?.until;
    return until !== undefined && until > performance.now();
  }

  /** A failure in a batch of writes penalises its texts: twice as long as the last time, if that was recent. */
  penalise(text: string): void {
    const entry = this.#entryOf(text);
    const { penalty } = entry;
    const now = performance.now();
    const isRecent = penalty !== undefined && now < penalty.until + penalty.ms;
    const ms = isRecent ? Math.min(2 * penalty.ms, LAST_PENALTY_MS) : FIRST_PENALTY_MS;
    entry.penalty = { ms, until: now + ms };
  }

  #entryOf(text: string): Entry {
    const known = this.#entries.get(text);
    if (known !== undefined) return known;
    const entry: Entry = { name: undefined, quickInARow: 0, average: 0, penalty: undefined };
    this.#entries.set(text, entry);
    return entry;
  }
}

const hashOf = (text: string): string => `b${createHash('sha256').update(text).digest('base64url').slice(0, 20)}`;

interface Prepared {
  readonly name: string;
  uses: number;
}

/** The statements that are prepared on one connection, by their names. */
export class PreparedNames {
  readonly #prepared: BoundedMap<string, Prepared>;
  /** Names that may be prepared or not. Closing an unknown name is not an error. */
  readonly #doubtful = new Set<string>();

  constructor(most: number) {
    this.#prepared = new BoundedMap(most);
  }

  /**
   * Returns undefined if the name is prepared; else the names to close before the caller prepares it, itself among
   * them. Unlike DEALLOCATE, the message Close works in a failed transaction too. A statement that `isPlannedAnew` is
   * prepared again every few executions.
   */
  use(name: string, isPlannedAnew: boolean): readonly string[] | undefined {
    const known = this.#prepared.get(name);
    if (known !== undefined && !(isPlannedAnew && known.uses >= PLANNED_TIMES)) {
      known.uses++;
      return undefined;
    }
    this.#doubtful.add(name);
    const dropped = this.#prepared.set(name, { name, uses: 1 });
    if (dropped !== undefined) this.#doubtful.add(dropped.name);
    const closed = [...this.#doubtful];
    this.#doubtful.clear();
    return closed;
  }

  /** An error leaves the state of the name unknown. */
  forget(name: string): void {
    this.#prepared.delete(name);
    this.#doubtful.add(name);
  }
}
