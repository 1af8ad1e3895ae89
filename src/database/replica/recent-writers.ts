/** The recent writers, and the position in the log that a standby must reach to have their writes. */

const MOST_WRITERS = 100_000;
/** Milliseconds beyond the lag: the log of asynchronous commits is written a little later. */
const MARGIN_MS = 1_000;

/** The last write through this process, until its position is known: no standby has reached it. */
type PendingWrite = symbol;

interface RecentWriter {
  readonly until: number;
  /** The greatest known position. */
  readonly position: bigint;
  readonly pending: PendingWrite | undefined;
}

export class RecentWriters {
  readonly #keepMs: number;
  /** Entries by caller; the oldest first. */
  readonly #entries = new Map<string, RecentWriter>();

  /** @param maxLag milliseconds; every readable standby has older writes. */
  constructor(maxLag: number) {
    this.#keepMs = maxLag + MARGIN_MS;
  }

  /** A write through this process, whose position is not known yet. Returns a function that takes the position. */
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

  /** An announcement of another process. */
  note(callerId: string, position: bigint, now = performance.now()): void {
    const known = this.#entries.get(callerId);
    if (known !== undefined && known.position >= position) return;
    this.#set(callerId, { until: now + this.#keepMs, position, pending: known?.pending }, now);
  }

  /** Returns true if a standby at position `replayed` may lack a write of the caller. */
  isAhead(callerId: string, replayed: bigint, now = performance.now()): boolean {
    const entry = this.#entries.get(callerId);
    if (entry === undefined || entry.until <= now) return false;
    return entry.pending !== undefined || entry.position > replayed;
  }

  #set(callerId: string, entry: RecentWriter, now: number): void {
    this.#entries.delete(callerId);
    this.#entries.set(callerId, entry);
    for (const [oldest, { until }] of this.#entries) {
      if (until > now && this.#entries.size <= MOST_WRITERS) break;
      this.#entries.delete(oldest);
    }
  }
}
