/** Slices of work leave turns of the event loop to requests. */
import { describe, expect, test } from 'vitest';
import { LongWork, Turns, WorkPace } from '../../src/changes/work-pace.ts';
import { useStoppedNow } from '../support/own-clock.ts';

/** Counts the turns of the event loop until `end`, which gives their number. */
function countTurns(): { end(): number } {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  return {
    end() {
      isOver = true;
      return turns;
    },
  };
}

test('slices run in their order, a few in each turn, and a failure is that of its slice', async () => {
  const pace = new WorkPace();
  const turns = countTurns();
  const ran: number[] = [];
  const slice = (i: number) => (): number => {
    const end = performance.now() + 1;
    while (performance.now() < end);
    ran.push(i);
    if (i === 3) throw new Error('slice 3');
    return i;
  };
  const began = performance.now();
  const all = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => pace.run(slice(i))));
  const count = turns.end();
  // A pause follows each turn.
  expect(performance.now() - began).toBeGreaterThanOrEqual(35);
  expect(ran).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(all.flatMap((each, i) => (each.status === 'rejected' ? [i] : []))).toEqual([3]);
  // Each slice takes the millisecond that a turn has.
  expect(count).toBeGreaterThanOrEqual(15);
});

test('the work behind a slice counts for its turn', async () => {
  const pace = new WorkPace();
  const turns = countTurns();
  const one = async (): Promise<void> => {
    await pace.run(() => undefined);
    const end = performance.now() + 1;
    while (performance.now() < end);
  };
  await Promise.all(Array.from({ length: 20 }, one));
  expect(turns.end()).toBeGreaterThanOrEqual(15);
});

describe('long work', () => {
  const pass = useStoppedNow();

  test('long work leaves a turn every 10 ms', async () => {
    const work = new LongWork();
    const turns: number[] = [];
    for (let took = 0; took < 45; took++) {
      if (work.isLong) {
        turns.push(took);
        await work.rest();
      }
      pass(1);
    }
    expect(turns).toEqual([10, 20, 30, 40]);
  });
});

test('few works run at a time, and a work that waits leaves its place to others until it can go on', async () => {
  const turns = new Turns(1);
  const ran: string[] = [];
  const read = Promise.withResolvers<void>();
  const slow = turns.run(async () => {
    ran.push('begin');
    await turns.giveWayUntil(read.promise);
    ran.push('end');
  });
  const failing = turns.run(async () => {
    ran.push('other');
    await Promise.resolve();
    ran.push('other end');
    throw new Error('other');
  });
  const last = turns.run(async () => {
    ran.push('last');
    read.resolve();
    await new Promise(setImmediate);
    ran.push('last end');
  });
  await expect(failing).rejects.toThrow('other');
  await Promise.all([slow, last]);
  expect(ran).toEqual(['begin', 'other', 'other end', 'last', 'last end', 'end']);
});
