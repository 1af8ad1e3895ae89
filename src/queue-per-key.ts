/** Keeps a bounded queue per key while it has tasks. */
import { FairQueue } from './fair-queue.ts';

export interface QueueSize {
  readonly running: number;
  readonly waiting: number;
  /** Milliseconds that a task may wait. Default: as long as its queue expects to be quick. */
  readonly patienceMs?: number;
}

export class QueuePerKey {
  readonly #size: QueueSize;
  readonly #overflow: () => Error;
  readonly #queues = new Map<string, FairQueue>();

  /** Rejects a task with `overflow()` when the queue of its key is full, or its patience ends. */
  constructor(size: QueueSize, overflow: () => Error) {
    this.#size = size;
    this.#overflow = overflow;
  }

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const { running: places, waiting: mostWaiting, patienceMs } = this.#size;
    const options = { places, mostWaiting, maxWaitMs: patienceMs, refuse: this.#overflow };
    const queue = this.#queues.get(key) ?? new FairQueue(options);
    this.#queues.set(key, queue);
    try {
      return await queue.serve(task, patienceMs);
    } finally {
      if (queue.isIdle) this.#queues.delete(key);
    }
  }
}
