import { createHash } from 'node:crypto';
import { BoundedMap } from '../../bounded-map.ts';

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

  /** After a failure in a batch of writes: twice as long as the last time, if that was not long ago. */
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
