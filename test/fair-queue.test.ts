// @module-tag long
/** Shares of callers: turns, places, kept places, and who is refused. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { FairQueue, type FairQueueOptions, type Leave, type Refused, waitingTasks } from '../src/fair-queue.ts';
import { asCaller, type QueuedCaller, SERVICE } from '../src/queued-caller.ts';
import { useOwnClock } from './support/own-clock.ts';

const callerOf = (id: string): QueuedCaller => ({ id, isKept: false });

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

  constructor(places: number, more: Pick<FairQueueOptions, 'kept' | 'spare'> = {}) {
    this.queue = queueOf({ places, ...more });
  }

  async enter(id: string, caller: QueuedCaller = callerOf(id)): Promise<void> {
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

test('tasks that wait are counted until they start or lose their patience', async () => {
  const before = waitingTasks();
  const world = new World(1);
  for (const id of ['a', 'b', 'c']) await world.enter(id);
  expect(waitingTasks() - before).toBe(2);
  await world.leave(0);
  expect(waitingTasks() - before).toBe(1);
  await expect(asCaller(callerOf('d'), () => world.queue.enter(1))).rejects.toThrow(Refusal);
  expect(waitingTasks() - before).toBe(1);
  await world.leave(0);
  await world.leave(0);
  expect([waitingTasks() - before, world.grants]).toEqual([0, ['a', 'b', 'c']]);
});

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
    const world = new World(1, { kept: 1 });
    await world.enter('a');
    await world.enter('a');
    await world.enter('service', SERVICE);
    expect(world.grants).toEqual(['a', 'service']);
  });

  test('kept work that waits comes before all others', async () => {
    const world = new World(1, { kept: 1 });
    await world.enter('a');
    for (let i = 0; i < 2; i++) await world.enter('service', SERVICE);
    await world.enter('b');
    await world.leave(0);
    expect(world.grants).toEqual(['a', 'service', 'service']);
  });
});

describe('spare places', () => {
  test('a caller who has places leaves the spare one to a caller who has none', async () => {
    const world = new World(4, { spare: 1 });
    for (let i = 0; i < 6; i++) await world.enter('a');
    for (let i = 0; i < 2; i++) await world.enter('b');
    expect(world.grants.join('')).toBe('aaab');
  });

  test('the end of a task leaves the spare place free for a third caller', async () => {
    const world = new World(4, { spare: 1 });
    for (let i = 0; i < 6; i++) await world.enter('a');
    for (let i = 0; i < 2; i++) await world.enter('b');
    await world.leave(0);
    await world.enter('c');
    expect(world.held).toEqual(
      new Map([
        ['a', 2],
        ['b', 1],
        ['c', 1],
      ]),
    );
  });
});

describe('refusals', () => {
  test('a caller who floods the queue learns late that they are refused', async () => {
    const queue = queueOf({ places: 1, mostWaiting: 1 });
    const flood = () => asCaller(callerOf('a'), () => queue.enter());
    void flood();
    void flood();
    const since = performance.now();
    await expect(flood()).rejects.toThrow('own');
    expect(performance.now() - since).toBeGreaterThan(499);
  });
});

describe('times of refusals', () => {
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

describe('rests', () => {
  useOwnClock();

  const enter = (queue: FairQueue, id: string, rests?: boolean) =>
    asCaller(callerOf(id), () => queue.enter(undefined, rests));

  test('a caller who rests waits, and others and tasks that do not rest are served', async () => {
    const queue = queueOf({ places: 1 });
    const served: string[] = [];
    const serve = (id: string, name = id, rests = true) =>
      enter(queue, id, rests).then((leave) => {
        served.push(name);
        leave();
      });
    queue.rest('a', 100);
    const resting = [serve('a'), serve('a')];
    await vi.advanceTimersByTimeAsync(99);
    await serve('b');
    await serve('a', 'quick', false);
    expect([served, queue.hasOthersThan('b')]).toEqual([['b', 'quick'], false]);
    await vi.advanceTimersByTimeAsync(1);
    await Promise.all(resting);
    expect(served).toEqual(['b', 'quick', 'a', 'a']);
  });

  test('a queue that closes ends the rests of tasks that wait', async () => {
    const queue = queueOf({ places: 1 });
    queue.rest('a', 100);
    const resting = enter(queue, 'a');
    const closing = queue.close();
    (await resting)();
    await closing;
    expect(queue.isIdle).toBe(true);
  });
});

describe('clients who have left', () => {
  test('a queue that drops their tasks starts none of them', async () => {
    const left = new Set<string>();
    const enter = (queue: FairQueue, id: string) =>
      asCaller({ ...callerOf(id), hasLeft: () => left.has(id) }, () => queue.enter());
    const outcomeOf = async (dropsLeft: boolean) => {
      left.clear();
      const queue = queueOf({ places: 1, dropsLeft });
      const first = await enter(queue, 'a');
      const all = [enter(queue, 'b'), enter(queue, 'b'), enter(queue, 'c')];
      for (const each of all) void each.then((leave) => leave()).catch(() => undefined);
      left.add('b');
      first();
      const results = await Promise.allSettled([...all, enter(queue, 'b')]);
      return results.map(({ status }) => status);
    };
    expect(await outcomeOf(true)).toEqual(['rejected', 'rejected', 'fulfilled', 'rejected']);
    expect(await outcomeOf(false)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled']);
  });
});

// ---------------------------------------------------------------- random mixes in virtual time

interface Task {
  /** 0 is the service, whose work is kept. */
  readonly caller: number;
  /** Milliseconds from the start until it asks for a place, and for which it keeps the place. */
  readonly at: number;
  readonly ms: number;
}

/** A grant of a place, with the state of the lane just before it. */
interface Grant {
  readonly task: Task;
  readonly at: number;
  /** The grants that were made before the task asked. */
  readonly asked: number;
  /** Places of each caller, and tasks of each that wait. */
  readonly held: ReadonlyMap<number, number>;
  readonly waiting: ReadonlyMap<number, number>;
}

/** A lane in virtual time, which notes every grant. */
class Lane {
  readonly grants: Grant[] = [];
  /** Moments at which a task waited although a place was free for it. */
  readonly idleWaits: number[] = [];
  readonly #queue: FairQueue;
  readonly #places: number;
  readonly #kept: number;
  readonly #running: { readonly task: Task; readonly end: number; readonly leave: Leave }[] = [];
  readonly #held = new Map<number, number>();
  readonly #waiting = new Map<number, number>();
  #now = 0;

  constructor(places: number, kept: number) {
    this.#queue = queueOf({ places, kept });
    this.#places = places;
    this.#kept = kept;
  }

  async run(tasks: readonly Task[]): Promise<this> {
    const arrivals = tasks.toSorted((a, b) => a.at - b.at);
    while (arrivals.length + this.#running.length > 0) {
      this.#running.sort((a, b) => a.end - b.end);
      const [first] = this.#running;
      const isEnd = first !== undefined && first.end <= (arrivals[0]?.at ?? Number.POSITIVE_INFINITY);
      this.#now = isEnd ? first.end : arrivals[0]!.at;
      if (isEnd) this.#end();
      else void this.#ask(arrivals.shift()!);
      await settled();
      if (this.#isPlaceIdle()) this.idleWaits.push(this.#now);
    }
    return this;
  }

  async #ask(task: Task): Promise<void> {
    const { caller, ms } = task;
    const asked = this.grants.length;
    add(this.#waiting, caller, 1);
    const leave = await asCaller(caller === 0 ? SERVICE : callerOf(`${caller}`), () => this.#queue.enter());
    add(this.#waiting, caller, -1);
    this.grants.push({ task, at: this.#now, asked, held: new Map(this.#held), waiting: new Map(this.#waiting) });
    add(this.#held, caller, 1);
    this.#running.push({ task, end: this.#now + ms, leave });
  }

  #end(): void {
    const { task, leave } = this.#running.shift()!;
    add(this.#held, task.caller, -1);
    leave();
  }

  #isPlaceIdle(): boolean {
    const used = this.#running.length;
    const ordinary = [...this.#waiting.keys()].some((caller) => caller !== 0);
    return (ordinary && used < this.#places) || (this.#waiting.has(0) && used < this.#places + this.#kept);
  }
}

function add(counts: Map<number, number>, caller: number, difference: number): void {
  const count = (counts.get(caller) ?? 0) + difference;
  if (count === 0) counts.delete(caller);
  else counts.set(caller, count);
}

const shareOf = (places: number): number => Math.max(1, Math.floor(places * 0.75));

/** Random bursts of 1 to 20 callers, and some kept work. */
const mix = fc.array(
  fc
    .record({
      caller: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 20 }) }, fc.constant(0)),
      at: fc.nat({ max: 200 }),
      ms: fc.integer({ min: 1, max: 60 }),
      times: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 10, max: 30 })),
    })
    .map(({ times, ...task }) => Array.from({ length: times }, (): Task => task)),
  { minLength: 1, maxLength: 20 },
);
const lane = fc.record({ places: fc.integer({ min: 1, max: 16 }), kept: fc.integer({ min: 0, max: 1 }) });

/** Checks the grants of many random mixes. */
const everyMix = (check: (ran: Lane, places: number) => void): Promise<void> =>
  fc.assert(
    fc.asyncProperty(lane, mix, async ({ places, kept }, tasks) => {
      check(await new Lane(places, kept).run(tasks.flat()), places);
    }),
    { numRuns: 100 },
  );

describe('random mixes of 1 to 20 callers', () => {
  test('a lane leaves no place empty while a task waits, and serves every task', async () => {
    await everyMix(({ idleWaits, grants }) => {
      expect(idleWaits).toEqual([]);
      expect(grants.at(-1)!.waiting).toEqual(new Map());
    });
  });

  test('a caller beyond three quarters of the places gets another place only if each caller that waits has as many', async () => {
    await everyMix(({ grants }, places) => {
      const share = shareOf(places);
      const greedy = grants.filter(({ task: { caller }, held, waiting }) => {
        const others = [...waiting.keys()].filter((other) => other !== caller && other !== 0);
        return caller !== 0 && (held.get(caller) ?? 0) >= share && others.some((id) => (held.get(id) ?? 0) < share);
      });
      expect(greedy).toEqual([]);
    });
  });

  test('no caller gets two places while another one with less than its share waits for one', async () => {
    await everyMix(({ grants }, places) => {
      const share = shareOf(places);
      /** The callers that have been served since the last grant of each caller that waits. */
      const overtaking = new Map<number, Set<number>>();
      for (const { task, held, waiting } of grants) {
        overtaking.delete(task.caller);
        for (const [waits, overtook] of overtaking) {
          const isBeyond = (held.get(waits) ?? 0) >= share;
          if (isBeyond || !waiting.has(waits)) overtaking.delete(waits);
          else if (task.caller !== 0) {
            expect(overtook.has(task.caller)).toBe(false);
            overtook.add(task.caller);
          }
        }
        for (const waits of waiting.keys()) if (!overtaking.has(waits)) overtaking.set(waits, new Set());
      }
    });
  });

  test('the service time of a caller is at most three quarters of all places while another one waits', async () => {
    await everyMix(({ grants }, places) => {
      for (const [i, { task, at, asked }] of grants.entries()) {
        // Places that were lent before the task asked come back when their tasks end.
        const meanwhile = Map.groupBy(grants.slice(asked, i), (grant) => grant.task.caller);
        for (const [caller, own] of meanwhile) {
          if (caller === 0 || task.caller === 0 || caller === task.caller) continue;
          const served = own.reduce((sum, grant) => sum + Math.min(grant.task.ms, at - grant.at), 0);
          expect(served).toBeLessThanOrEqual(shareOf(places) * (at - task.at));
        }
      }
    });
  });

  test('callers with tasks of equal length that wait all the time are served for equally long', async () => {
    const crowd = fc.record({
      places: fc.integer({ min: 1, max: 8 }),
      callers: fc.integer({ min: 2, max: 20 }),
      ms: fc.integer({ min: 1, max: 50 }),
      each: fc.integer({ min: 8, max: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(crowd, async ({ places, callers, ms, each }) => {
        const tasks = Array.from({ length: callers * each }, (_, i) => ({ caller: 1 + (i % callers), at: 0, ms }));
        const { grants } = await new Lane(places, 0).run(tasks);
        const end = grants.find(({ at, waiting }) => at > 0 && waiting.size < callers)!.at;
        const before = grants.filter(({ at }) => at < end);
        const times = Array.from({ length: callers }, (_, i) =>
          before.reduce((sum, { task }) => sum + (task.caller === i + 1 ? ms : 0), 0),
        );
        expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(ms);
      }),
      { numRuns: 50 },
    );
  });

  test('ordinary tasks leave the kept place free, and kept work comes before all of them', async () => {
    await everyMix(({ grants }, places) => {
      const ordinary = grants.filter(({ task: { caller } }) => caller !== 0);
      const used = ordinary.map(({ held }) => [...held.values()].reduce((sum, count) => sum + count, 0));
      expect(used.filter((count) => count >= places)).toEqual([]);
      expect(ordinary.filter(({ waiting }) => waiting.has(0))).toEqual([]);
    });
  });
});
