/** A queue serves callers in their order, and rejects callers that would wait too long. */
import { describe, expect, it, vi } from 'vitest';
import { QueueFull } from '../../../src/database/contract.ts';
import { Queue } from '../../../src/database/lanes/queue.ts';
import { useOwnClock } from '../../support/own-clock.ts';

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i + 1);

describe('a queue', () => {
  useOwnClock();

  /** A queue of two places that are taken for so many milliseconds each, and callers that wait. */
  async function busy(tookMs: number, waiting: number) {
    const queue = new Queue({ places: 2 });
    for (let i = 0; i < 100; i++) {
      await queue.enter();
      queue.leave(tookMs);
    }
    const served: number[] = [];
    for (const n of upTo(waiting + 2)) void queue.enter().then(() => served.push(n));
    await vi.advanceTimersByTimeAsync(0);
    return { queue, served };
  }

  it('a queue serves as many callers as it has places, in their order', async () => {
    const { queue, served } = await busy(1, 3);
    expect(served).toEqual([1, 2]);
    for (const _ of upTo(2)) queue.leave();
    await vi.advanceTimersByTimeAsync(0);
    expect(served).toEqual([1, 2, 3, 4]);
  });

  it('a queue rejects a caller that would wait too long, and reports when to retry', async () => {
    const { queue } = await busy(400, 26);
    await expect(queue.enter()).rejects.toMatchObject({ kind: 'unavailable', retryAfter: 6 });
  });

  it('a queue limits the length of a fast queue too', async () => {
    const { queue } = await busy(0.01, 1_000);
    await expect(queue.enter()).rejects.toBeInstanceOf(QueueFull);
  });

  it('a closed queue serves earlier callers and rejects later ones', async () => {
    const { queue, served } = await busy(1, 1);
    let isClosed = false;
    const closing = queue.close().then(() => {
      isClosed = true;
    });
    await expect(queue.enter()).rejects.toMatchObject({ kind: 'unavailable' });
    for (const _ of upTo(3)) {
      expect(isClosed).toBe(false);
      queue.leave();
      await vi.advanceTimersByTimeAsync(0);
    }
    await closing;
    expect(served).toEqual([1, 2, 3]);
  });

  it('a caller that has lost patience leaves its turn to the next', async () => {
    const { queue } = await busy(1, 0);
    const impatient = queue.enter(50).catch((error: unknown) => error);
    const patient = queue.enter();
    await vi.advanceTimersByTimeAsync(50);
    expect(await impatient).toBeInstanceOf(QueueFull);
    queue.leave();
    expect(await patient).toBe(50);
  });
});
