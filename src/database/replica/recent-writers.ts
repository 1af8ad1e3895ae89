/** Who wrote within a time, and the position in the log that a standby must reach to have it all. */

const MOST_WRITERS = 100_000;
/** Milliseconds beyond the lag: the log of asynchronous commits is written a little later. */
const MARGIN_MS = 1_000;

/** The last write through this process, while its position is not known: no standby has reached it. */
type PendingWrite = symbol;

interface Entry {
  readonly until: number;
  /** The greatest that is known. */
  readonly position: bigint;
  readonly pending: PendingWrite | undefined;
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
    const pending: PendingWrite = Symbol(callerId);
    const position = this.#entries.get(callerId)?.position ?? 0n;
    this.#set(callerId, { until: now + this.#keepMs, position, pending }, now);
    return (ended) => {
      const entry = this.#entries.get(callerId);
      if (entry?.pending !== pending) return;
      const greatest = entry.position > ended ? entry.position : ended;
      this.#entries.set(callerId, { until: entry.until, position: greatest, pending: undefined });
    };
  }

  /** What another process tells. */
  note(callerId: string, position: bigint, now = performance.now()): void {
    const known = this.#entries.get(callerId);
    if (known !== undefined && known.position >= position) return;
    this.#set(callerId, { until: now + this.#keepMs, position, pending: known?.pending }, now);
  }

  /** Whether a standby that has reached `replayed` lacks a write of theirs. */
  isAhead(callerId: string, replayed: bigint, now = performance.now()): boolean {
    const entry = this.#entries.get(callerId);
    if (entry === undefined || entry.until <= now) return false;
    return entry.pending !== undefined || entry.position > replayed;
  }

  #set(callerId: string, entry: Entry, now: number): void {
    this.#entries.delete(callerId);
    this.#entries.set(callerId, entry);
    for (const [oldest, { until }] of this.#entries) {
      if (until > now && this.#entries.size <= MOST_WRITERS) break;
      this.#entries.delete(oldest);
    }
  }
}
