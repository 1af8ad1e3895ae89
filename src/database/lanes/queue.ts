/** The queue of every lane: callers wait for one of a few places, first come, first served. */
import { QueueFull, StoreError } from '../contract.ts';

/** Milliseconds. A caller that would wait longer is rejected, and may try again later. */
export const MAX_WAIT_MS = 5_000;
/** The weight of the last service in the moving average of service times. */
const LAST_WEIGHT = 0.1;

export interface QueueOptions {
  /** Callers that are served at a time. */
  readonly places: number;
  readonly mostWaiting?: number | undefined;
  readonly maxWaitMs?: number | undefined;
}

export class Queue {
  readonly #places: number;
  readonly #mostWaiting: number;
  readonly #maxWaitMs: number;
  readonly #waiting: (() => void)[] = [];
  readonly #emptied = Promise.withResolvers<void>();
  #served = 0;
  #isClosed = false;
  /** The average service time. */
  #meanMs = 1;

  constructor({ places, mostWaiting = 1_000, maxWaitMs = MAX_WAIT_MS }: QueueOptions) {
    this.#places = places;
    this.#mostWaiting = mostWaiting;
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * Resolves with the milliseconds in the queue, once the caller has a place; the caller ends its service by `leave`.
   * Throws QueueFull: at once where the wait is expected to be too long, and when `patienceMs` have passed.
   */
  async enter(patienceMs?: number): Promise<number> {
    if (this.#isClosed) throw new StoreError('unavailable', undefined, new Error('the database is closed'));
    if (this.#served < this.#places) {
      this.#served++;
      return 0;
    }
    this.#mustBeShort();
    const since = performance.now();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const giveUp = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(resolve), 1);
      reject(new QueueFull(Math.max(patienceMs!, this.#expectedMs)));
    };
    const late = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs);
    await promise;
    clearTimeout(late);
    return performance.now() - since;
  }

  /** Serves a caller whose work is one piece. */
  async serve<T>(work: () => Promise<T>): Promise<T> {
    await this.enter();
    const since = performance.now();
    try {
      return await work();
    } finally {
      this.leave(performance.now() - since);
    }
  }

  /** @param tookMs the service time; undefined if it is not typical */
  leave(tookMs = this.#meanMs): void {
    this.#meanMs += (tookMs - this.#meanMs) * LAST_WEIGHT;
    const next = this.#waiting.shift();
    if (next !== undefined) next();
    else if (--this.#served === 0 && this.#isClosed) this.#emptied.resolve();
  }

  /** Rejects later callers, and waits until earlier ones have left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#served > 0) await this.#emptied.promise;
  }

  /** A short queue is always worth its wait, because a slow service may have been an exception. */
  #mustBeShort(): void {
    const { length } = this.#waiting;
    const isLong = length >= this.#places && this.#expectedMs > this.#maxWaitMs;
    if (isLong || length >= this.#mostWaiting) throw new QueueFull(this.#expectedMs);
  }

  /** Milliseconds until a caller that comes now has a place. */
  get #expectedMs(): number {
    return (this.#waiting.length * this.#meanMs) / this.#places;
  }
}
