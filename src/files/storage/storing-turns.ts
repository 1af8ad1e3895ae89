/**
 * The turns of uploads: callers store bytes in turn. A place is held while bytes are stored, and never while a client is
 * awaited, so that slow clients hold none. Chunks arrive in events of a socket, which know no caller: an upload keeps
 * its own.
 */
import { FairQueue } from '../../fair-queue.ts';
import { memoized } from '../../memoized.ts';
import { StorageUnavailable } from './storage.ts';

/** Milliseconds after which others take the place of work whose storage does not answer. */
const LONGEST_MS = 30_000;

export class StoringTurns {
  readonly #queue: FairQueue;

  constructor(places: number) {
    this.#queue = new FairQueue({
      places,
      kept: 1,
      // The open uploads of each caller are limited, and none of them reads more while it waits.
      mostWaiting: Number.POSITIVE_INFINITY,
      maxWaitMs: Number.POSITIVE_INFINITY,
      refuse: ({ reason }) => new StorageUnavailable(reason),
    });
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const leave = memoized(await this.#queue.enter());
    const late = setTimeout(leave, LONGEST_MS);
    try {
      return await work();
    } finally {
      clearTimeout(late);
      leave();
    }
  }
}
