/** Estimates how long a queue takes, from how long the last of those that left it were served. */
import { QueueFull } from '../contract.ts';

/** Milliseconds. A caller that would wait longer is rejected, and may try again. */
export const MAX_WAIT_MS = 5_000;
const WEIGHT = 0.1;

export class QueueEstimate {
  readonly #servedAtOnce: number;
  readonly #mostWaiting: number;
  #mean = 1;

  constructor(servedAtOnce: number, mostWaiting = 1_000) {
    this.#servedAtOnce = servedAtOnce;
    this.#mostWaiting = mostWaiting;
  }

  /** Milliseconds for which one was served. */
  note(took: number): void {
    this.#mean += (took - this.#mean) * WEIGHT;
  }

  waitOf(waiting: number): number {
    return (waiting * this.#mean) / this.#servedAtOnce;
  }

  /**
   * Throws QueueFull. A short queue is always worth it: what was slow may have been an exception.
   */
  admit(waiting: number): void {
    const wait = this.waitOf(waiting);
    if (waiting < this.#servedAtOnce) return;
    if (waiting >= this.#mostWaiting || wait > MAX_WAIT_MS) throw new QueueFull(wait);
  }
}
