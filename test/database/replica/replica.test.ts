// @module-tag long
/**
 * Which server a read goes to. The two servers are played by functions; `npm run test:faults --
 * --only replica` has real ones.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Cells, type Reader, StoreError } from '../../../src/database/contract.ts';
import { RecentWriters } from '../../../src/database/replica/recent-writers.ts';
import { Replica } from '../../../src/database/replica/replica.ts';
import { readWriters, WriteAnnouncements } from '../../../src/database/replica/write-announcements.ts';
import { raw } from '../../../src/sql.ts';
import { useOwnClock } from '../../support/own-clock.ts';

const QUESTION = raw('SELECT 1');
/** The reads of positions take the urgent lane. */
const readerThat = (rows: (isUrgent: boolean) => Promise<readonly Cells[]>): Reader => ({
  rows: (_, options) => rows(options?.lane === 'urgent'),
  run: async () => 0,
});

class Pair {
  primaryPosition = 100;
  standbyPosition: number | null = 100;
  standbyFails: Error | undefined;
  startedAt = 'at noon';
  hearing: (() => Promise<void>) | undefined;
  /** The number of drains. */
  rounds = 0;
  readonly replica: Replica;

  constructor(maxLag: number) {
    this.replica = new Replica({
      drainAnnouncements: async () => {
        this.rounds++;
        await this.hearing?.();
      },
      primary: readerThat(async (isUrgent) => [isUrgent ? [String(this.primaryPosition), 'at noon'] : ['primary']]),
      standby: readerThat(async (isUrgent) => {
        if (this.standbyFails !== undefined) throw this.standbyFails;
        if (!isUrgent) return [['standby']];
        return [[this.standbyPosition === null ? null : String(this.standbyPosition), this.startedAt]];
      }),
      maxLag,
    });
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
    pair.replica.noteListening(false);
    expect(await pair.place()).toBe('primary');
    const since = performance.now();
    pair.replica.noteListening(true);
    expect(await pair.place()).toBe('primary');
    await pair.until('standby');
    expect(performance.now() - since).toBeGreaterThan(290);
  });

  it('a lost replica costs one try, and comes back by itself', async () => {
    pair = new Pair(1_000);
    await pair.until('standby');
    pair.standbyFails = new StoreError('unavailable');
    expect(await pair.place()).toBe('primary');
    expect(pair.replica.isFresh).toBe(false);
    pair.standbyFails = undefined;
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
    const end = pair.replica.beginWrite('ann');
    expect([await pair.place('ann'), await pair.place('bob')]).toEqual(['primary', 'standby']);
    pair.primaryPosition = 150;
    end(150n);
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
    pair.replica.noteWriters({ position: 1_000n, callerIds: ['bob', 'ann'] });
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
  it('recent writers are forgotten after the lag', () => {
    const writers = new RecentWriters(1_000);
    writers.note('ann', 5n, 0);
    writers.begin('bob', 600);
    const ahead = (id: string, now: number) => writers.isAhead(id, 4n, now);
    expect([ahead('ann', 1_999), ahead('ann', 2_000), ahead('bob', 2_500)]).toEqual([true, false, true]);
    writers.note('cleo', 5n, 5_000);
    expect([ahead('bob', 2_500), ahead('cleo', 5_001)]).toEqual([false, true]);
  });

  it('a writer is ahead of every position before its last write', () => {
    const writers = new RecentWriters(1_000);
    const endFirst = writers.begin('ann', 0);
    const endSecond = writers.begin('ann', 1);
    const ahead = (replayed: bigint) => writers.isAhead('ann', replayed, 2);
    endFirst(10n);
    writers.note('ann', 10n, 2);
    expect(ahead(1_000n)).toBe(true);
    endSecond(20n);
    writers.note('ann', 15n, 2);
    expect([ahead(19n), ahead(20n)]).toEqual([true, false]);
    writers.note('ann', 30n, 2);
    expect([ahead(29n), ahead(30n)]).toEqual([true, false]);
  });
});

describe('recent writers of several nodes', () => {
  it('a writer is ahead of the greatest announced position, also while a write has none', () => {
    const writers = new RecentWriters(1_000);
    const ahead = (replayed: bigint) => writers.isAhead('ann', replayed, 3);
    const end = writers.begin('ann', 0);
    writers.note('ann', 100n, 1);
    expect(ahead(1_000n)).toBe(true);
    end(90n);
    expect([ahead(95n), ahead(100n)]).toEqual([true, false]);
    const endNext = writers.begin('ann', 2);
    expect(ahead(1_000n)).toBe(true);
    endNext(99n);
    expect([ahead(99n), ahead(100n)]).toEqual([true, false]);
  });

  it('a writer is remembered from its last announcement', () => {
    const writers = new RecentWriters(1_000);
    const end = writers.begin('ann', 0);
    writers.note('ann', 100n, 1_500);
    end(90n);
    expect([2_100, 3_499, 3_500].map((now) => writers.isAhead('ann', 95n, now))).toEqual([true, true, false]);
  });
});

describe('write announcements', () => {
  it('an announcement names all writers during the one before, once', async () => {
    const sent: string[] = [];
    const gates: PromiseWithResolvers<bigint>[] = [];
    const announcements = new WriteAnnouncements((ids) => {
      sent.push(ids);
      gates.push(Promise.withResolvers());
      return gates.at(-1)!.promise;
    });
    const positions: (bigint | undefined)[] = [];
    const note = (id: string): void => void announcements.announce(id).then((position) => positions.push(position));
    note('a');
    note('b');
    await Promise.resolve();
    await Promise.resolve();
    for (const id of ['c', 'd', 'c']) note(id);
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect([sent, positions]).toEqual([['a,b'], []]);
    // A failed announcement does not fail the write.
    gates[0]!.reject(new Error('lost'));
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect([sent, positions]).toEqual([
      ['a,b', 'c,d'],
      [undefined, undefined],
    ]);
    gates[1]!.resolve(7n);
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(positions.slice(2)).toEqual([7n, 7n, 7n]);
  });

  it('an announcement fits into the payload of a notification', async () => {
    const sent: string[] = [];
    const announcements = new WriteAnnouncements(async (ids) => BigInt(sent.push(`${2n ** 64n}:${ids}`)));
    await Promise.all(Array.from({ length: 450 }, (_, n) => announcements.announce(String(n).padStart(36, '0'))));
    expect(sent.every((payload) => payload.length < 8_000)).toBe(true);
    const notes = sent.map(readWriters);
    expect(notes.flatMap(({ callerIds }) => callerIds)).toHaveLength(450);
    expect(new Set(notes.map(({ position }) => position))).toEqual(new Set([2n ** 64n]));
  });
});
