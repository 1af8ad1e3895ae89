/** Estimates the wait in a queue from recent service times. */
import { QueueFull } from '../contract.ts';

/** Milliseconds. A caller that would wait longer is rejected, and may try again later. */
export const MAX_WAIT_MS = 5_000;
const LAST_WEIGHT = 0.1;

export class QueueEstimate {
  readonly #servedAtOnce: number;
  readonly #mostWaiting: number;
  readonly #maxWaitMs: number;
  #mean = 1;

  constructor(servedAtOnce: number, mostWaiting = 1_000, maxWaitMs = MAX_WAIT_MS) {
    this.#servedAtOnce = servedAtOnce;
    this.#mostWaiting = mostWaiting;
    this.#maxWaitMs = maxWaitMs;
  }

  /** @param took milliseconds of a service */
  note(took: number): void {
    this.#mean += (took - this.#mean) * LAST_WEIGHT;
  }

  waitOf(waiting: number): number {
    return (waiting * this.#mean) / this.#servedAtOnce;
  }

  /** Throws QueueFull. A short queue is always worth its wait, because a slow service may have been an exception. */
  admit(waiting: number): void {
    if (waiting < this.#servedAtOnce) return;
    const wait = this.waitOf(waiting);
    if (waiting >= this.#mostWaiting || wait > this.#maxWaitMs) throw new QueueFull(wait);
  }
}
