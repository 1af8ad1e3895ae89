import { createHash } from 'node:crypto';
import { BoundedMap } from '../../bounded-map.ts';
import { currentCaller, type QueuedCaller } from '../../queued-caller.ts';
import { raw, type Sql } from '../../sql.ts';
import type { ReadOptions } from '../contract.ts';
import { type AnyClient, type BatchStatement, type Outcome, StatementBatch, TogetherError } from '../pg-internals.ts';
import { isStalePlan } from '../to-store-error.ts';

/** Prepared statements that a connection keeps. Each costs PostgreSQL some 30 kB there, and more where its text is long. */
const MOST_PREPARED = 256;
/** UTF-16 units for which a text counts once more. */
const COUNTED_TEXT = 8_192;

/** Executions after which PostgreSQL may keep one plan for all values of a statement (its documentation of PREPARE). */
const PLANNED_TIMES = 5;

/** Milliseconds up to which an answer counts as quick. */
const QUICK_MS = 10;
/** Quick answers in a row that make a statement quick. */
const TRIALS = 3;
/** Milliseconds of the moving average above which a statement is slow. */
const SLOW_MS = 25;
/** The weight of the last answer in the moving average: one pause of the program decides nothing. */
const WEIGHT = 0.3;
/** Milliseconds for which a statement that failed in a batch is sent alone. */
const PENALTY_MS = 500;
/** UTF-16 units of all texts that are remembered, and the least that one counts: 2,000 short texts, or fewer long ones. */
const MOST_TEXT = 8_388_608;
const LEAST_TEXT = 4_096;
/** Callers of one text that are remembered apart, and those whose slow answers make the text slow for all. */
const MOST_CALLERS = 64;
const ENOUGH_CALLERS = 3;

/** `unknown`: too few answers yet, or neither quick nor slow. */
type Speed = 'quick' | 'unknown' | 'slow';

export type Plan = ReadOptions['plan'];

interface Entry {
  /** Given with the second use, so that texts sent once displace no prepared statement. */
  name: string | undefined;
  readonly shared: Speeds;
  /** The speeds of callers whose values were not quick, by their ids. */
  own: BoundedMap<string, Speeds> | undefined;
  /** The ends of the penalties of callers, by their ids. */
  penalties: BoundedMap<string, number> | undefined;
}

interface Speeds {
  quickInARow: number;
  /** Milliseconds. */
  average: number;
}

interface AnsweredBatch {
  readonly hasFailed?: boolean;
  /** Default: the caller of the work at hand. */
  readonly caller?: QueuedCaller;
}

/**
 * Sends the statements of one server, over all its connections: prepared under a name from the second use of a text on,
 * parameters and cells as text.
 */
export class Statements {
  readonly history = new StatementHistory();
  readonly #mostPrepared: number;
  readonly #states = new WeakMap<AnyClient, ConnectionState>();

  /** @param mostPrepared 0: nothing is prepared, because a pooler lends connections. */
  constructor(mostPrepared = MOST_PREPARED) {
    this.#mostPrepared = mostPrepared;
  }

  /** Sends the statements as one transaction. Resolves with the outcome of the last. */
  async send(client: AnyClient, ...statements: readonly Sql[]): Promise<Outcome> {
    try {
      return (await this.sendTogether(client, statements)).at(-1)!;
    } catch (error) {
      throw (error as TogetherError).cause;
    }
  }

  /** Sends the statements as one transaction. Rejects with a `TogetherError`. */
  async sendTogether(client: AnyClient, statements: readonly Sql[]): Promise<readonly Outcome[]> {
    const state = this.#stateOf(client);
    const named = statements.map((statement): BatchStatement => {
      const name = this.#mostPrepared === 0 ? undefined : this.history.nameOf(statement.text);
      const closed = name === undefined ? [] : state.use(name, statement, this.#mostPrepared);
      return { statement, name, closed };
    });
    try {
      return await client.query(new StatementBatch(named)).outcomes;
    } catch (error) {
      // A value that cannot be encoded keeps the whole batch from being sent.
      const failure = error instanceof TogetherError ? error : new TogetherError(error, 0, true);
      const failed = named[failure.completed];
      for (const { closed = [] } of named) for (const name of closed) state.forget(name);
      if (failed?.name !== undefined && isStalePlan(failure.cause)) {
        state.forget(failed.name);
        this.history.renew(failed.statement.text, failed.name);
      }
      throw failure;
    }
  }

  /** Sets the plan of later statements, without waiting: a connection that fails here fails the next statement as well. */
  setPlan(client: AnyClient, plan: Plan): void {
    const state = this.#stateOf(client);
    if (this.#mostPrepared === 0 || state.plan === plan) return;
    state.plan = plan;
    const mode = plan === undefined ? 'auto' : 'force_generic_plan';
    this.send(client, raw(`SET plan_cache_mode = ${mode}`)).catch(() => undefined);
  }

  #stateOf(client: AnyClient): ConnectionState {
    const state = this.#states.get(client) ?? new ConnectionState();
    this.#states.set(client, state);
    return state;
  }
}

/** The memory of the statements of one server, by their text. */
export class StatementHistory {
  readonly #entries = new BoundedMap<string, Entry>(MOST_TEXT, ({ length }) => Math.max(LEAST_TEXT, length));
  /** The latest answer to a quick statement of each caller, in its usual time. */
  readonly #ratios = new BoundedMap<string, number>(MOST_CALLERS);
  #renewals = 0;

  /** The name to prepare the statement under; undefined at its first use. */
  nameOf(text: string): string | undefined {
    const known = this.#entries.get(text);
    if (known === undefined) this.#entryOf(text);
    else known.name ??= sqlHash(text);
    return known?.name;
  }

  /**
   * After a migration that changed the result of the statement. Under another name, every connection prepares it again,
   * also connections that have the former one.
   */
  renew(text: string, name: string): void {
    const entry = this.#entryOf(text);
    if (entry.name === name) entry.name = `${sqlHash(text)}_${++this.#renewals}`;
  }

  /** The speed of the text with the values of this caller, where these were slow; else that of the text. */
  speedOf(text: string, { id }: QueuedCaller = currentCaller()): Speed {
    const entry = this.#entries.get(text);
    const { quickInARow = 0, average = 0 } = entry?.own?.get(id) ?? entry?.shared ?? {};
    return quickInARow >= TRIALS ? 'quick' : average > SLOW_MS ? 'slow' : 'unknown';
  }

  /** @param took milliseconds that the server needed, a share of them for a statement of a group. */
  noteAnswer(text: string, took: number, { hasFailed = false, caller = currentCaller() }: AnsweredBatch = {}): void {
    const entry = this.#entryOf(text);
    const { quickInARow, average } = entry.shared;
    if (quickInARow >= TRIALS && average > 0) this.#ratios.set(caller.id, took / average);
    const usual = took <= QUICK_MS ? took : took / this.#paceFor(caller);
    const own = entry.own?.get(caller.id);
    const isQuick = !hasFailed && usual <= QUICK_MS;
    if (isQuick && own === undefined) {
      note(entry.shared, usual, false);
      return;
    }
    // The values of one caller may be slow where those of others are not.
    entry.own ??= new BoundedMap(MOST_CALLERS);
    const speed = own ?? { ...entry.shared };
    note(speed, usual, hasFailed);
    const isQuickAgain = isQuick && speed.quickInARow >= TRIALS;
    if (isQuickAgain) Object.assign(entry.shared, speed);
    if (isQuickAgain) entry.own.delete(caller.id);
    else entry.own.set(caller.id, speed);
    if (!isQuick && entry.own.size >= ENOUGH_CALLERS) note(entry.shared, usual, hasFailed);
  }

  /**
   * How many times as long as usual the statements of other callers took just now, at least 1: a busy machine makes no
   * statement slow. Each counts once, so that no caller alone makes the machine seem busy.
   */
  #paceFor({ id }: QueuedCaller): number {
    const others = [...this.#ratios.entries()].flatMap(([other, ratio]) => (other === id ? [] : [ratio]));
    if (others.length < ENOUGH_CALLERS) return 1;
    return Math.max(1, others.sort((a, b) => a - b)[others.length >> 1]!);
  }

  /** Returns true while the caller's statement is to be written alone. */
  isPenalised(text: string, { id }: QueuedCaller = currentCaller()): boolean {
    return (this.#entries.get(text)?.penalties?.get(id) ?? 0) > performance.now();
  }

  /** Penalises a text of the caller that has failed in a batch of writes. */
  penalise(text: string, { id }: QueuedCaller = currentCaller()): void {
    const entry = this.#entryOf(text);
    entry.penalties ??= new BoundedMap(MOST_CALLERS);
    entry.penalties.set(id, performance.now() + PENALTY_MS);
  }

  #entryOf(text: string): Entry {
    const known = this.#entries.get(text);
    if (known !== undefined) return known;
    const shared = { quickInARow: 0, average: 0 };
    const entry: Entry = { name: undefined, shared, own: undefined, penalties: undefined };
    this.#entries.set(text, entry);
    return entry;
  }
}

function note(speeds: Speeds, took: number, hasFailed: boolean): void {
  speeds.average += (took - speeds.average) * WEIGHT;
  // A statement that fails is sent alone, until it has been quick again.
  if (hasFailed) speeds.quickInARow = 0;
  else if (took <= QUICK_MS) speeds.quickInARow++;
  else if (speeds.quickInARow < TRIALS || speeds.average > QUICK_MS) speeds.quickInARow = 0;
}

const sqlHash = (text: string): string => `b${createHash('sha256').update(text).digest('base64url').slice(0, 20)}`;

/** The plan of one connection, and the statements that are prepared on it. */
class ConnectionState {
  plan: Plan;
  /** Statements by their names, the oldest first. `uses`: 0 after an error that has left unknown whether it is prepared. */
  readonly #prepared = new Map<string, { uses: number; readonly count: number }>();

  /**
   * Returns undefined if the name is prepared; else the names to close before the caller prepares it, itself among
   * them: closing an unknown name is not an error. Unlike DEALLOCATE, the message Close works in a failed transaction
   * too. A statement that `isPlannedAnew` is prepared again every few executions.
   */
  use(name: string, { text, isPlannedAnew }: Sql, most: number): readonly string[] | undefined {
    const known = this.#prepared.get(name);
    if (known !== undefined && known.uses > 0 && !(isPlannedAnew && known.uses >= PLANNED_TIMES)) {
      known.uses++;
      return undefined;
    }
    this.#prepared.delete(name);
    this.#prepared.set(name, { uses: 1, count: 1 + Math.floor(text.length / COUNTED_TEXT) });
    const closed = [name];
    let total = 0;
    for (const [each, { count }] of [...this.#prepared].reverse()) {
      total += count;
      if (total > most && each !== name && this.#prepared.delete(each)) closed.push(each);
    }
    return closed;
  }

  forget(name: string): void {
    Object.assign(this.#prepared.get(name) ?? {}, { uses: 0 });
  }
}
