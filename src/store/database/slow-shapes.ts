/**
 * Remembers which statements are slow, by their text, so that they are not sent where fast ones
 * would wait behind them.
 */

/**
 * Milliseconds of the moving average: above the first a statement is slow, below the second it is
 * fast again.
 */
const SLOW_MS = 20;
const FAST_MS = 8;
/**
 * The weight of the last measurement: one of 70 ms makes a statement slow, one pause of the program
 * of 50 ms does not.
 */
const WEIGHT = 0.3;
const MOST_SHAPES = 2_000;

export class SlowShapes {
  /**
   * By text, the least recently slow first. Fast statements are not in it, so that reading it costs
   * nothing.
   */
  readonly #averages = new Map<string, number>();
  readonly #slow = new Set<string>();

  isSlow(text: string): boolean {
    return this.#slow.has(text);
  }

  /** @param took the milliseconds that PostgreSQL needed for this statement alone. */
  note(text: string, took: number): void {
    const before = this.#averages.get(text);
    if (before === undefined && took < SLOW_MS) return;
    const average = (before ?? 0) * (1 - WEIGHT) + took * WEIGHT;
    this.#averages.delete(text);
    if (average < FAST_MS) {
      this.#slow.delete(text);
      // An average that is far from slow needs no memory.
      if (average >= 1) this.#averages.set(text, average);
      return;
    }
    this.#averages.set(text, average);
    if (average > SLOW_MS) this.#slow.add(text);
    if (this.#averages.size > MOST_SHAPES) this.#forgetOldest();
  }

  #forgetOldest(): void {
    const [oldest] = this.#averages.keys();
    this.#averages.delete(oldest!);
    this.#slow.delete(oldest!);
  }
}
