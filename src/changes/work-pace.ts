/** Divides the work of thousands of replays into slices, so that requests have their turn between. */

/** Milliseconds of slices in one turn of the event loop. */
const TURN_MS = 3;

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
      setImmediate(() => this.#turn());
    });
  }

  #turn(): void {
    const end = performance.now() + TURN_MS;
    let done = 0;
    while (done < this.#waiting.length && performance.now() < end) this.#waiting[done++]!();
    this.#waiting = this.#waiting.slice(done);
    this.#isRunning = this.#waiting.length > 0;
    if (this.#isRunning) setImmediate(() => this.#turn());
  }
}
