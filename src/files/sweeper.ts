/** The sweep: at the start, then every hour for as long as the service runs, and never two at a time. */

const HOUR = 3_600_000;

export interface SweeperParts {
  /** Milliseconds of grace; ends soon after the signal does. How many were removed. */
  readonly sweep: (grace: number | undefined, signal: AbortSignal) => Promise<number>;
  readonly onFault: (error: unknown) => void;
}

export class Sweeper {
  readonly #parts: SweeperParts;
  readonly #ending = new AbortController();
  #running: Promise<unknown> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
  }

  /** Resolves after the first sweep, whatever came of it. */
  start(grace?: number): Promise<void> {
    this.#timer = setInterval(() => {
      // One that takes longer than an hour is let finish.
      if (this.#running === undefined) void this.#tend();
    }, HOUR);
    this.#timer.unref();
    return this.#tend(grace);
  }

  /** A failure is told, and the next hour is another try. */
  async #tend(grace?: number): Promise<void> {
    await this.sweep(grace).catch((error: unknown) => {
      // What the end of the service cuts off is no failure.
      if (!this.#ending.signal.aborted) this.#parts.onFault(error);
    });
  }

  /** Now, or after the one that runs. */
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

  stop(): void {
    clearInterval(this.#timer);
    this.#ending.abort(new Error('the service ends'));
  }
}
