/** Who wrote within a time, so that their next reads see it. */

const MOST_WRITERS = 100_000;
/** Milliseconds beyond the lag, for clocks and timers. */
const MARGIN_MS = 100;

export class RecentWriters {
  readonly #keepMs: number;
  /** Caller → until when; the oldest first. */
  readonly #until = new Map<string, number>();

  constructor(maxLag: number) {
    this.#keepMs = maxLag + MARGIN_MS;
  }

  add(callerId: string, now = performance.now()): void {
    this.#until.delete(callerId);
    this.#until.set(callerId, now + this.#keepMs);
    for (const [oldest, until] of this.#until) {
      if (until > now && this.#until.size <= MOST_WRITERS) return;
      this.#until.delete(oldest);
    }
  }

  has(callerId: string, now = performance.now()): boolean {
    return (this.#until.get(callerId) ?? Number.NEGATIVE_INFINITY) > now;
  }
}
