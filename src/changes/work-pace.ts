/** Divides the work for thousands of streams, so that requests have their turn between. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Milliseconds of slices in one turn of the event loop, and at least between two such turns. A request takes several turns,
 * of which one at most has slices then; and what slices leave to be collected comes as slowly.
 */
const [TURN_MS, PAUSE_MS] = [0.5, 4];

export class WorkPace {
  readonly #waiting: (() => void)[] = [];
  #isRunning = false;

  /** Runs a slice of work, which takes less than a turn, when it is due. */
  run<T>(slice: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(slice());
        } catch (error) {
          reject(error);
        }
      });
      if (this.#isRunning) return;
      this.#isRunning = true;
      setImmediate(() => void this.#turn());
    });
  }

  async #turn(): Promise<void> {
    const end = performance.now() + TURN_MS;
    while (this.#waiting.length > 0 && performance.now() < end) {
      this.#waiting.shift()!();
      // The tick comes behind all work that the slice has led to, which counts for the turn too.
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
    this.#isRunning = this.#waiting.length > 0;
    if (this.#isRunning) setTimeout(() => void this.#turn(), PAUSE_MS);
  }
}

/** Milliseconds of one turn that a batch for many groups takes. */
const LONG_TURN_MS = 10;

/** Work that cannot wait for others, but leaves them a turn now and then. */
export class LongWork {
  #since = performance.now();

  get isLong(): boolean {
    return performance.now() - this.#since >= LONG_TURN_MS;
  }

  async rest(): Promise<void> {
    await nextTurn();
    this.#since = performance.now();
  }
}

/** Work of which few run at a time, in their order. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(most: number) {
    this.#free = most;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#enter();
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  /** Leaves the place of the running work to others until the promise resolves. */
  async giveWayUntil(wait: Promise<void>): Promise<void> {
    this.#leave();
    await wait.finally(() => this.#enter());
  }

  async #enter(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
