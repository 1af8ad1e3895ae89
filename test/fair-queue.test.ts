/** Shares of callers: turns, places, kept places, and who is refused. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { asCaller, type Caller, SERVICE } from '../src/caller.ts';
import { FairQueue, type FairQueueOptions, type Leave, type Refused } from '../src/fair-queue.ts';
import { useOwnClock } from './support/own-clock.ts';

const callerOf = (id: string): Caller => ({ id, isKept: false });

class Refusal extends Error {
  readonly refused: Refused;
  constructor(refused: Refused) {
    super(refused.reason);
    this.refused = refused;
  }
}
const queueOf = (options: Omit<FairQueueOptions, 'refuse'>): FairQueue =>
  new FairQueue({ ...options, refuse: (refused) => new Refusal(refused) });

/** A queue under test: it notes who has a place, in the order of the grants. */
class World {
  readonly queue: FairQueue;
  readonly grants: string[] = [];
  readonly #running: { readonly id: string; readonly leave: Leave }[] = [];

  constructor(places: number, kept = 0) {
    this.queue = queueOf({ places, kept });
  }

  async enter(id: string, caller: Caller = callerOf(id)): Promise<void> {
    void asCaller(caller, () => this.queue.enter()).then((leave) => {
      this.grants.push(id);
      this.#running.push({ id, leave });
    });
    await settled();
  }

  /** The task with this number ends. */
  async leave(at: number): Promise<void> {
    this.#running.splice(at % this.#running.length, 1)[0]?.leave();
    await settled();
  }

  get held(): ReadonlyMap<string, number> {
    const held = new Map<string, number>();
    for (const { id } of this.#running) held.set(id, (held.get(id) ?? 0) + 1);
    return held;
  }

  get running(): number {
    return this.#running.length;
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('turns', () => {
  test('a caller who asks alone has every place', async () => {
    const world = new World(4);
    for (let i = 0; i < 6; i++) await world.enter('a');
    expect(world.held).toEqual(new Map([['a', 4]]));
  });

  test('a second caller gets the next place that is free, and every second one after it', async () => {
    const world = new World(1);
    for (let i = 0; i < 4; i++) await world.enter('a');
    for (let i = 0; i < 2; i++) await world.enter('b');
    for (let i = 0; i < 5; i++) await world.leave(0);
    expect(world.grants.join('')).toBe('aababa');
  });

  test('a caller keeps at most three quarters of the places while another one waits', async () => {
    const world = new World(4);
    for (let i = 0; i < 20; i++) await world.enter('a');
    for (let i = 0; i < 20; i++) await world.enter('b');
    for (let i = 0; i < 12; i++) await world.leave(0);
    expect([...world.held.values()].sort()).toEqual([2, 2]);
  });
});

describe('kept places', () => {
  test('kept work gets a place that no other caller may take', async () => {
    const world = new World(1, 1);
    await world.enter('a');
    await world.enter('a');
    await world.enter('service', SERVICE);
    expect(world.grants).toEqual(['a', 'service']);
  });

  test('kept work that waits comes before all others', async () => {
    const world = new World(1, 1);
    await world.enter('a');
    for (let i = 0; i < 2; i++) await world.enter('service', SERVICE);
    await world.enter('b');
    await world.leave(0);
    expect(world.grants).toEqual(['a', 'service', 'service']);
  });
});

describe('refusals', () => {
  useOwnClock();

  const refusedOf = async (entered: Promise<unknown>): Promise<Refused> => {
    const [result] = await Promise.allSettled([entered]);
    if (result?.status === 'rejected' && result.reason instanceof Refusal) return result.reason.refused;
    throw new Error('the queue has refused nothing');
  };
  const enter = (queue: FairQueue, id: string, patienceMs?: number) =>
    asCaller(callerOf(id), () => queue.enter(patienceMs));

  test('a caller with too many waiting tasks is refused, another one is not', async () => {
    const queue = queueOf({ places: 1, mostWaiting: 2 });
    for (let i = 0; i < 3; i++) void enter(queue, 'a');
    expect(await refusedOf(enter(queue, 'a'))).toMatchObject({ reason: 'own' });
    const other = enter(queue, 'b', 50);
    const refused = refusedOf(other);
    await vi.advanceTimersByTimeAsync(50);
    expect(await refused).toEqual({ reason: 'others', waitMs: 50 });
  });

  test('a caller whose tasks take long is refused before they wait, and hears when to retry', async () => {
    const queue = queueOf({ places: 2 });
    for (let i = 0; i < 100; i++) {
      const leave = await enter(queue, 'a');
      await vi.advanceTimersByTimeAsync(400);
      leave();
    }
    for (let i = 0; i < 28; i++) void enter(queue, 'a');
    const { reason, waitMs } = await refusedOf(enter(queue, 'a'));
    expect([reason, Math.round(waitMs / 100)]).toEqual(['own', 52]);
  });

  test('a task that has lost patience takes no place later', async () => {
    const queue = queueOf({ places: 1 });
    const leave = await enter(queue, 'a');
    const impatient = refusedOf(enter(queue, 'b', 50));
    await vi.advanceTimersByTimeAsync(50);
    await impatient;
    leave();
    expect(await enter(queue, 'c')).toBeTypeOf('function');
  });

  test('a task that fails leaves its place', async () => {
    const queue = queueOf({ places: 1 });
    await expect(queue.serve(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect([queue.isIdle, await queue.serve(async () => 'done')]).toEqual([true, 'done']);
  });

  test('a closed queue serves earlier tasks and rejects later ones', async () => {
    const queue = queueOf({ places: 1 });
    const leave = await enter(queue, 'a');
    const second = enter(queue, 'a');
    let isClosed = false;
    const closing = queue.close().then(() => {
      isClosed = true;
    });
    expect(await refusedOf(enter(queue, 'b'))).toMatchObject({ reason: 'closed' });
    leave();
    const leaveSecond = await second;
    expect(isClosed).toBe(false);
    leaveSecond();
    await closing;
  });
});

test('random mixes of 1 to 20 callers stay within their shares, and no place stays empty', async () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ enter: fc.nat({ max: 19 }), times: fc.integer({ min: 1, max: 8 }) }) },
      { weight: 4, arbitrary: fc.record({ leave: fc.nat({ max: 31 }) }) },
    ),
    { maxLength: 60 },
  );
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 8 }), steps, async (places, all) => {
      const world = new World(places);
      const share = Math.max(1, Math.floor(places * 0.75));
      const asked = new Map<string, number>();
      for (const step of all) {
        const before = world.grants.length;
        const heldBefore = world.held;
        if ('leave' in step) await world.leave(step.leave);
        else
          for (let i = 0; i < step.times; i++) {
            asked.set(`${step.enter}`, (asked.get(`${step.enter}`) ?? 0) + 1);
            await world.enter(`${step.enter}`);
          }
        const grants = world.grants.slice(before);
        const servedOf = (id: string): number => world.grants.filter((granted) => granted === id).length;
        const waiting = [...asked].filter(([id, count]) => count > servedOf(id)).map(([id]) => id);
        expect(world.running).toBe(Math.min(places, world.running + waiting.length));
        if ('leave' in step)
          for (const id of grants) {
            const isOverShare = (heldBefore.get(id) ?? 0) > share;
            const others = waiting.filter((other) => other !== id && (world.held.get(other) ?? 0) < share);
            expect(isOverShare && others.length > 0).toBe(false);
          }
      }
      // Whoever waits is served within one round of all callers.
      const waiting = new Set(
        [...asked].filter(([id, n]) => n > world.grants.filter((g) => g === id).length).map(([id]) => id),
      );
      const from = world.grants.length;
      for (let i = 0; i < waiting.size * 2 && world.running > 0; i++) await world.leave(0);
      const served = new Set(world.grants.slice(from));
      if (share < places || places === 1) expect([...waiting].filter((id) => !served.has(id))).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
