/** Queues of limited length: a few tasks run at a time, in the order of their arrival. */

export interface QueueSize {
  readonly running: number;
  readonly waiting: number;
}

/** Rejects a task with `overflow()` when the queue is full. */
export class BoundedQueue {
  readonly #size: QueueSize;
  readonly #overflow: () => Error;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(size: QueueSize, overflow: () => Error) {
    this.#size = size;
    this.#overflow = overflow;
  }

  get isIdle(): boolean {
    return this.#running === 0;
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    await this.#enter();
    try {
      return await task();
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    if (this.#running < this.#size.running) {
      this.#running++;
      return;
    }
    if (this.#waiting.length >= this.#size.waiting) throw this.#overflow();
    await new Promise<void>((enter) => this.#waiting.push(enter));
  }

  /** Passes the place to the task that has waited longest. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }
}

/** Keeps a bounded queue per key while it has tasks. */
export class QueuePerKey {
  readonly #size: QueueSize;
  readonly #overflow: () => Error;
  readonly #queues = new Map<string, BoundedQueue>();

  constructor(size: QueueSize, overflow: () => Error) {
    this.#size = size;
    this.#overflow = overflow;
  }

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(key) ?? new BoundedQueue(this.#size, this.#overflow);
    this.#queues.set(key, queue);
    try {
      return await queue.run(task);
    } finally {
      if (queue.isIdle) this.#queues.delete(key);
    }
  }
}
