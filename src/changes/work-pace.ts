/** Divides the work for thousands of streams, so that requests have their turn between. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Milliseconds of slices in one turn of the event loop, and between two such turns: a request takes several turns. */
const [TURN_MS, PAUSE_MS] = [1, 1];

export class WorkPace {
  #waiting: (() => void)[] = [];
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
    let done = 0;
    while (done < this.#waiting.length && performance.now() < end) {
      this.#waiting[done++]!();
      // The work behind a slice counts for the turn too.
      await undefined;
    }
    this.#waiting = this.#waiting.slice(done);
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
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
