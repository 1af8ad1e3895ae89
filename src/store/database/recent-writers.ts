/** Who wrote within a time, and the position in the log that a standby must reach to have it all. */

const MOST_WRITERS = 100_000;
/** Milliseconds beyond the lag: the log of asynchronous commits is written a little later. */
const MARGIN_MS = 1_000;
/** Not known yet: no standby has reached it. */
const UNKNOWN = 1n << 65n;

interface Entry {
  readonly until: number;
  readonly position: bigint;
}

export class RecentWriters {
  readonly #keepMs: number;
  /** By caller; the oldest first. */
  readonly #entries = new Map<string, Entry>();

  /** @param maxLag milliseconds; what was written before is on every standby that is read. */
  constructor(maxLag: number) {
    this.#keepMs = maxLag + MARGIN_MS;
  }

  /**
   * A write through this process, whose position is not known yet. Returns what to call with it;
   * a later write of the caller has a later one.
   */
  begin(callerId: string, now = performance.now()): (position: bigint) => void {
    const entry = this.#set(callerId, UNKNOWN, now);
    return (position) => {
      if (this.#entries.get(callerId) === entry) this.#entries.set(callerId, { ...entry, position });
    };
  }

  /** What another process tells. */
  note(callerId: string, position: bigint, now = performance.now()): void {
    const known = this.#entries.get(callerId);
    if (known === undefined || known.position < position) this.#set(callerId, position, now);
  }

  /** Whether a standby that has reached `replayed` lacks a write of theirs. */
  isAhead(callerId: string, replayed: bigint, now = performance.now()): boolean {
    const entry = this.#entries.get(callerId);
    return entry !== undefined && entry.until > now && entry.position > replayed;
  }

  #set(callerId: string, position: bigint, now: number): Entry {
    const entry = { until: now + this.#keepMs, position };
    this.#entries.delete(callerId);
    this.#entries.set(callerId, entry);
    for (const [oldest, { until }] of this.#entries) {
      if (until > now && this.#entries.size <= MOST_WRITERS) break;
      this.#entries.delete(oldest);
    }
    return entry;
  }
}
