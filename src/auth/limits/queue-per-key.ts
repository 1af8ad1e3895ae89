/** Keeps a bounded queue per key while it has tasks. */
import { FairQueue } from '../../fair-queue.ts';

export interface QueueSize {
  readonly running: number;
  readonly waiting: number;
}

export class QueuePerKey {
  readonly #size: QueueSize;
  readonly #overflow: () => Error;
  readonly #queues = new Map<string, FairQueue>();

  /** Rejects a task with `overflow()` when the queue of its key is full. */
  constructor(size: QueueSize, overflow: () => Error) {
    this.#size = size;
    this.#overflow = overflow;
  }

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const { running: places, waiting: mostWaiting } = this.#size;
    const queue = this.#queues.get(key) ?? new FairQueue({ places, mostWaiting, refuse: this.#overflow });
    this.#queues.set(key, queue);
    try {
      return await queue.serve(task);
    } finally {
      if (queue.isIdle) this.#queues.delete(key);
    }
  }
}
