// @module-tag long
/**
 * Which server a read goes to. The two servers are played by functions; `npm run test:faults --
 * --only replica` has real ones.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Cells, type Reader, StoreError } from '../../../src/database/contract.ts';
import { Replica } from '../../../src/database/replica/replica.ts';
import { raw } from '../../../src/sql.ts';
import { useOwnClock } from '../../support/own-clock.ts';

const QUESTION = raw('SELECT 1');
/** The reads of positions take the urgent lane, and so do announcements, which have the ids of the writers. */
const readerThat = (rows: (isUrgent: boolean, ids?: unknown) => Promise<readonly Cells[]>): Reader => ({
  rows: ({ params }, options) => rows(options?.lane === 'urgent', params[1]?.value),
  run: async () => 0,
});
/** Lets what was resolved come to its end. */
const settle = () => vi.advanceTimersByTimeAsync(0);

class Pair {
  primaryPosition = 100;
  standbyPosition: number | null = 100;
  standbyFails: Error | undefined;
  startedAt = 'at noon';
  hearing: (() => Promise<void>) | undefined;
  /** The ids of each announcement. */
  readonly announced: unknown[] = [];
  announcing: (() => Promise<void>) | undefined;
  hear: (payload: string) => void = () => undefined;
  noteListening: (isUp: boolean) => void = () => undefined;
  /** The number of drains. */
  rounds = 0;
  readonly replica: Replica;

  constructor(maxLag: number) {
    this.replica = new Replica({
      listener: {
        listen: async ({ onMessage, onState }) => {
          this.hear = onMessage;
          this.noteListening = onState;
          return async () => undefined;
        },
        drainAnnouncements: async () => {
          this.rounds++;
          await this.hearing?.();
        },
      },
      primary: readerThat(async (isUrgent, ids) => {
        if (ids !== undefined) {
          this.announced.push(ids);
          await this.announcing?.();
        }
        return [isUrgent ? [String(this.primaryPosition), 'at noon'] : ['primary']];
      }),
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

  it('a replica does not answer a writer until it has replayed the write', async () => {
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
    for (const id of ['bob', 'ann']) pair.hear(id);
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

  it('a writer is answered by the primary for a second, and until a fresh replica has replayed the write', async () => {
    pair = new Pair(1_000);
    await pair.until('standby');
    pair.hear('ann');
    await vi.advanceTimersByTimeAsync(900);
    expect([await pair.place('ann'), await pair.place('bob')]).toEqual(['primary', 'standby']);
    pair.hear('ann');
    await vi.advanceTimersByTimeAsync(900);
    expect(await pair.place('ann')).toBe('primary');
    await vi.advanceTimersByTimeAsync(500);
    expect(await pair.place('ann')).toBe('standby');
  });

  it('a writer is remembered after an announcement that failed', async () => {
    pair = new Pair(1_000);
    await pair.until('standby');
    pair.announcing = () => Promise.reject(new Error('lost'));
    await pair.replica.noteWrite('ann');
    expect([await pair.place('ann'), await pair.place('bob')]).toEqual(['primary', 'standby']);
  });

  it('an announcement names all writers during the one before, once', async () => {
    pair = new Pair(1_000);
    const gates: PromiseWithResolvers<void>[] = [];
    pair.announcing = () => {
      gates.push(Promise.withResolvers<void>());
      return gates.at(-1)!.promise;
    };
    const noted: string[] = [];
    const note = (id: string): void => void pair.replica.noteWrite(id).then(() => noted.push(id));
    for (const id of ['a', 'b']) note(id);
    await settle();
    for (const id of ['c', 'd', 'c']) note(id);
    await settle();
    expect([pair.announced, noted]).toEqual([[['a', 'b']], []]);
    // A failed announcement does not fail the write.
    gates[0]!.reject(new Error('lost'));
    await settle();
    expect([pair.announced.slice(1), noted]).toEqual([[['c', 'd']], ['a', 'b']]);
    gates[1]!.resolve();
    await settle();
    expect(noted.slice(2).sort()).toEqual(['c', 'c', 'd']);
  });
});
