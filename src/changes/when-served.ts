/** Repeats a read that a full queue of the database refuses: a stream waits, and keeps its place. */
import { setTimeout as sleep } from 'node:timers/promises';
import { QueueFull } from '../database/contract.ts';

const REFUSAL_PAUSE_MS = 1_000;

/** Throws the refusal once the read is not wanted any more. */
export async function whenServed<T>(read: () => Promise<T>, isWanted: () => boolean): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof QueueFull) || !isWanted()) throw error;
      // The streams that were refused together come back one by one.
      await sleep(REFUSAL_PAUSE_MS * (0.5 + Math.random() / 2), undefined, { ref: false });
      if (!isWanted()) throw error;
    }
  }
}
