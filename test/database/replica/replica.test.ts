// @module-tag long
/**
 * Which server a read goes to. The two servers are played by functions; `npm run test:faults --
 * --only replica` has real ones.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Cells, type Reader, StoreError } from '../../../src/database/contract.ts';
import { RecentWriters } from '../../../src/database/replica/recent-writers.ts';
import { Replica } from '../../../src/database/replica/replica.ts';
import { raw, type Sql } from '../../../src/sql.ts';
import { useOwnClock } from '../../support/own-clock.ts';

const QUESTION = raw('SELECT 1');
/** The reads of positions take the urgent lane. */
const readerThat = (rows: (isUrgent: boolean) => Promise<readonly Cells[]>): Reader => ({
  rows: (_, options) => rows(options?.lane === 'urgent'),
  run: async () => 0,
});

/** Plays the primary for announcements: an answer of the gate is the position. */
class Announced {
  readonly ids: string[] = [];
  readonly gates: PromiseWithResolvers<bigint>[] = [];
  async rows({ params }: Sql): Promise<readonly Cells[]> {
    this.ids.push(String(params[1]!.value));
    const gate = Promise.withResolvers<bigint>();
    this.gates.push(gate);
    return [[String(await gate.promise)]];
  }
}
/** Lets what was resolved come to its end. */
const settle = () => vi.advanceTimersByTimeAsync(0);

class Pair {
  primaryPosition = 100;
  standbyPosition: number | null = 100;
  standbyFails: Error | undefined;
  startedAt = 'at noon';
  hearing: (() => Promise<void>) | undefined;
  hear: (payload: string) => void = () => undefined;
  noteListening: (isUp: boolean) => void = () => undefined;
  /** The number of drains. */
  rounds = 0;
  readonly replica: Replica;

  constructor(maxLag: number) {
    this.replica = new Replica({
      listener: {
        listen: async (_, onMessage, onState) => {
          this.hear = onMessage;
          this.noteListening = onState;
          return async () => undefined;
        },
        drainAnnouncements: async () => {
          this.rounds++;
          await this.hearing?.();
        },
      },
      primary: readerThat(async (isUrgent) => [isUrgent ? [String(this.primaryPosition), 'at noon'] : ['primary']]),
      standby: readerThat(async (isUrgent) => {
        if (this.standbyFails !== undefined) throw this.standbyFails;
        if (!isUrgent) return [['standby']];
        return [[this.standbyPosition === null ? null : String(this.standbyPosition), this.startedAt]];
      }),
      maxLag,
    });
    void this.replica.listen();
  }

  async place(callerId = 'somebody'): Promise<string> {
    return (await this.replica.for(callerId).rows(QUESTION))[0]![0]!;
  }

  async until(place: string, isWanted = true): Promise<void> {
    const end = performance.now() + 5_000;
    while (((await this.place()) === place) !== isWanted) {
      if (performance.now() > end) throw new Error(`reads never went to the ${place}`);
      await vi.advanceTimersByTimeAsync(10);
    }
  }
}

describe('a replica', () => {
  useOwnClock();
  let pair: Pair;
  afterEach(() => pair.replica.close());

  it('a replica is read only after a look has found it complete', async () => {
    pair = new Pair(1_000);
    expect(await pair.place()).toBe('primary');
    await pair.until('standby');
  });

  it('a lagging replica is not read until it has caught up', async () => {
    pair = new Pair(500);
    await pair.until('standby');
    pair.primaryPosition = 200;
    await pair.until('primary');
    pair.standbyPosition = 200;
    await pair.until('standby');
  });

  it('a replica is not read while announcements may be missing, nor for the lag after that', async () => {
    pair = new Pair(300);
    await pair.until('standby');
    pair.noteListening(false);
    expect(await pair.place()).toBe('primary');
    const since = performance.now();
    pair.noteListening(true);
    expect(await pair.place()).toBe('primary');
    await pair.until('standby');
    expect(performance.now() - since).toBeGreaterThan(290);
  });

  it('a lost replica costs one try, and comes back by itself', async () => {
    pair = new Pair(1_000);
    await pair.until('standby');
    pair.standbyFails = new StoreError('unavailable');
    expect(await pair.place()).toBe('primary');
    pair.standbyFails = undefined;
    expect(await pair.place()).toBe('primary');
    await pair.until('standby');
  });

  it('the primary answers the statements whose column a replica lacks', async () => {
    pair = new Pair(1_000);
    await pair.until('standby');
    pair.standbyFails = new Error('column "note" does not exist');
    expect([await pair.place(), await pair.place()]).toEqual(['primary', 'primary']);
  });

  it('a replica does not answer a writer until it has reached the position of the write', async () => {
    pair = new Pair(5_000);
    await pair.until('standby');
    pair.primaryPosition = 150;
    const noted = pair.replica.noteWrite('ann');
    expect([await pair.place('ann'), await pair.place('bob')]).toEqual(['primary', 'standby']);
    await noted;
    expect([await pair.place('ann'), await pair.place('bob')]).toEqual(['primary', 'standby']);
    pair.standbyPosition = 150;
    const since = performance.now();
    while ((await pair.place('ann')) === 'primary') {
      expect(performance.now() - since).toBeLessThan(4_000);
      await vi.advanceTimersByTimeAsync(10);
    }
  });

  it('announcements of other nodes are drained before the first read of a request', async () => {
    pair = new Pair(5_000);
    await pair.until('standby');
    const heard = Promise.withResolvers<void>();
    pair.hearing = () => heard.promise;
    pair.rounds = 0;
    const reader = pair.replica.for('ann');
    const places = Promise.all([reader.rows(QUESTION), reader.rows(QUESTION, { lane: 'slow' })]);
    await Promise.resolve();
    pair.hear('1000:bob,ann');
    heard.resolve();
    expect(await places).toEqual([[['primary']], [['primary']]]);
    expect([await reader.rows(QUESTION), pair.rounds]).toEqual([[['primary']], 1]);
    expect([await pair.place('bob'), await pair.place('cleo')]).toEqual(['primary', 'standby']);
  });

  it('a replica does not answer while announcements cannot be drained', async () => {
    pair = new Pair(5_000);
    await pair.until('standby');
    pair.hearing = () => Promise.reject(new Error('the connection is lost'));
    expect(await pair.place()).toBe('primary');
  });

  it('a promoted replica is never read; the primary under another name is', async () => {
    pair = new Pair(1_000);
    pair.standbyPosition = null;
    pair.startedAt = 'at one';
    await vi.advanceTimersByTimeAsync(600);
    expect(await pair.place()).toBe('primary');
    pair.startedAt = 'at noon';
    await pair.until('standby');
  });
});

describe('recent writers', () => {
  useOwnClock();
  let announced: Announced;
  let writers: RecentWriters;
  beforeEach(() => {
    announced = new Announced();
    writers = new RecentWriters(1_000, announced);
  });
  const ahead = (id: string, ...positions: bigint[]) => positions.map((replayed) => writers.isAhead(id, replayed));
  /** Announces a write. Returns a function that answers the announcement. */
  async function write(id: string): Promise<(position: bigint) => Promise<void>> {
    void writers.noteWrite(id);
    await settle();
    return async (position) => {
      announced.gates.shift()!.resolve(position);
      await settle();
    };
  }

  it('recent writers are forgotten after the lag', async () => {
    writers.hear('5:ann');
    await vi.advanceTimersByTimeAsync(600);
    await write('bob');
    await vi.advanceTimersByTimeAsync(1_399);
    expect([ahead('ann', 4n), ahead('bob', 4n)]).toEqual([[true], [true]]);
    await vi.advanceTimersByTimeAsync(1);
    expect([ahead('ann', 4n), ahead('bob', 4n)]).toEqual([[false], [true]]);
    await vi.advanceTimersByTimeAsync(600);
    writers.hear('5:cleo');
    expect([ahead('bob', 4n), ahead('cleo', 4n)]).toEqual([[false], [true]]);
  });

  it('a writer is ahead of every position before its last write', async () => {
    const endFirst = await write('ann');
    const endSecond = await write('ann');
    await endFirst(10n);
    writers.hear('10:ann');
    expect(ahead('ann', 1_000n)).toEqual([true]);
    await endSecond(20n);
    writers.hear('15:ann');
    expect(ahead('ann', 19n, 20n)).toEqual([true, false]);
    writers.hear('30:ann');
    expect(ahead('ann', 29n, 30n)).toEqual([true, false]);
  });

  it('a writer is ahead of the greatest announced position, also while a write has none', async () => {
    const end = await write('ann');
    writers.hear('100:ann');
    expect(ahead('ann', 1_000n)).toEqual([true]);
    await end(90n);
    expect(ahead('ann', 95n, 100n)).toEqual([true, false]);
    const endNext = await write('ann');
    expect(ahead('ann', 1_000n)).toEqual([true]);
    await endNext(99n);
    expect(ahead('ann', 99n, 100n)).toEqual([true, false]);
  });

  it('a writer is remembered from its last announcement', async () => {
    const end = await write('ann');
    await end(90n);
    await vi.advanceTimersByTimeAsync(1_500);
    writers.hear('100:ann');
    await vi.advanceTimersByTimeAsync(1_999);
    expect(ahead('ann', 95n)).toEqual([true]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ahead('ann', 95n)).toEqual([false]);
  });

  it('a writer stays ahead after an announcement that failed', async () => {
    await write('ann');
    announced.gates.shift()!.reject(new Error('lost'));
    await settle();
    expect(ahead('ann', 1_000n)).toEqual([true]);
    const end = await write('ann');
    await end(90n);
    expect(ahead('ann', 89n, 90n)).toEqual([true, false]);
  });

  it('an announcement names all writers during the one before, once', async () => {
    const noted: string[] = [];
    const note = (id: string): void => void writers.noteWrite(id).then(() => noted.push(id));
    note('a');
    note('b');
    await settle();
    for (const id of ['c', 'd', 'c']) note(id);
    await settle();
    expect([announced.ids, noted]).toEqual([['a,b'], []]);
    // A failed announcement does not fail the write.
    announced.gates[0]!.reject(new Error('lost'));
    await settle();
    expect([announced.ids, noted]).toEqual([
      ['a,b', 'c,d'],
      ['a', 'b'],
    ]);
    announced.gates[1]!.resolve(7n);
    await settle();
    expect(noted.slice(2).sort()).toEqual(['c', 'c', 'd']);
    expect(ahead('c', 6n, 7n)).toEqual([true, false]);
  });

  it('an announcement fits into the payload of a notification, and another node reads it', async () => {
    const position = 2n ** 64n;
    const all = Array.from({ length: 450 }, (_, n) => String(n).padStart(36, '0'));
    const noted = Promise.all(all.map((id) => writers.noteWrite(id)));
    for (let sent = 0; sent < 3; sent++) {
      await settle();
      announced.gates[sent]!.resolve(position);
    }
    await noted;
    const payloads = announced.ids.map((ids) => `${position}:${ids}`);
    expect(payloads.every((payload) => payload.length < 8_000)).toBe(true);
    const others = new RecentWriters(1_000);
    for (const payload of payloads) others.hear(payload);
    expect(all.every((id) => others.isAhead(id, position - 1n) && !others.isAhead(id, position))).toBe(true);
  });
});
