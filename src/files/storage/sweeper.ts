/** Runs the sweep at the start and then every hour, never twice at a time. */

const HOUR_MS = 3_600_000;

export interface SweeperParts {
  /** Returns the number of deleted keys, soon after the signal aborts. `grace` is in milliseconds. */
  readonly sweep: (grace: number | undefined, signal: AbortSignal) => Promise<number>;
  readonly onError: (error: unknown) => void;
}

export class Sweeper {
  readonly #parts: SweeperParts;
  readonly #ending = new AbortController();
  #running: Promise<unknown> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
  }

  /** Resolves after the first sweep, successful or not. */
  start(grace?: number): Promise<void> {
    this.#timer = setInterval(() => {
      // A sweep that takes longer than an hour goes on.
      if (this.#running === undefined) void this.#tend();
    }, HOUR_MS);
    this.#timer.unref();
    return this.#tend(grace);
  }

  /** Reports a failure; the next hour is another try. */
  async #tend(grace?: number): Promise<void> {
    await this.sweep(grace).catch((error: unknown) => {
      // A sweep that the end of the service aborts has not failed.
      if (!this.#ending.signal.aborted) this.#parts.onError(error);
    });
  }

  /** Sweeps now, or after the running sweep. */
  async sweep(grace?: number): Promise<number> {
    const before = this.#running;
    const own = (async () => {
      await before?.catch(() => undefined);
      return this.#parts.sweep(grace, this.#ending.signal);
    })();
    this.#running = own;
    try {
      return await own;
    } finally {
      if (this.#running === own) this.#running = undefined;
    }
  }

  /** Resolves when no sweep runs any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#ending.abort(new Error('the service is stopping'));
    await this.#running?.catch(() => undefined);
  }
}
