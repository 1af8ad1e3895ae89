/**
 * Which server a read goes to. The two servers are played by functions; `npm run test:faults --
 * --only replica` has real ones.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { raw } from '../../src/sql.ts';
import { type Cells, type Reader, StoreError } from '../../src/store/database/contract.ts';
import { RecentWriters } from '../../src/store/database/recent-writers.ts';
import { Replica } from '../../src/store/database/replica.ts';
import { WriteNews } from '../../src/store/database/write-news.ts';

const QUESTION = raw('SELECT 1');
const readerThat = (rows: () => Promise<readonly Cells[]>): Reader => ({ rows, slowRows: rows, run: async () => 0 });

class Pair {
  primaryPosition = 100;
  standbyPosition: number | null = 100;
  standbyFails: Error | undefined;
  startedAt = 'at noon';
  readonly replica: Replica;

  constructor(maxLag: number) {
    this.replica = new Replica({
      primary: readerThat(async () => [['primary']]),
      standby: readerThat(async () => {
        if (this.standbyFails !== undefined) throw this.standbyFails;
        return [['standby']];
      }),
      primaryProbe: { rows: async () => [[String(this.primaryPosition), 'at noon']] },
      standbyProbe: {
        rows: async () => {
          if (this.standbyFails !== undefined) throw this.standbyFails;
          return [[this.standbyPosition === null ? null : String(this.standbyPosition), this.startedAt]];
        },
      },
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
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

describe('a replica', () => {
  let pair: Pair;
  afterEach(() => pair.replica.close());

  it('is read only after it was seen to have everything', async () => {
    pair = new Pair(1_000);
    expect(await pair.place()).toBe('primary');
    await pair.until('standby');
  });

  it('is left alone while it lags, and used again when it has caught up', async () => {
    pair = new Pair(500);
    await pair.until('standby');
    pair.primaryPosition = 200;
    await pair.until('primary');
    pair.standbyPosition = 200;
    await pair.until('standby');
  });

  it('is left alone while writes on other nodes are not heard of, and for the lag after that', async () => {
    pair = new Pair(300);
    await pair.until('standby');
    pair.replica.hears(false);
    expect(await pair.place()).toBe('primary');
    const since = performance.now();
    pair.replica.hears(true);
    expect(await pair.place()).toBe('primary');
    await pair.until('standby');
    expect(performance.now() - since).toBeGreaterThan(290);
  });

  it('that is gone costs one try, and comes back by itself', async () => {
    pair = new Pair(1_000);
    await pair.until('standby');
    pair.standbyFails = new StoreError('unavailable');
    expect(await pair.place()).toBe('primary');
    expect(pair.replica.isFresh).toBe(false);
    pair.standbyFails = undefined;
    await pair.until('standby');
  });

  it('that lacks a column is helped out by the primary, statement by statement', async () => {
    pair = new Pair(1_000);
    await pair.until('standby');
    pair.standbyFails = new Error('column "note" does not exist');
    expect([await pair.place(), await pair.place()]).toEqual(['primary', 'primary']);
  });

  it('does not answer who has written within ten seconds, though it may lag less', async () => {
    pair = new Pair(300);
    await pair.until('standby');
    pair.replica.noteWrite('ann');
    expect([await pair.place('ann'), await pair.place('bob')]).toEqual(['primary', 'standby']);
    await new Promise((resolve) => setTimeout(resolve, 450));
    expect([await pair.place('ann'), await pair.place('bob')]).toEqual(['primary', 'standby']);
  });

  it('that was promoted is never read; the primary under another name is', async () => {
    pair = new Pair(1_000);
    pair.standbyPosition = null;
    pair.startedAt = 'at one';
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(await pair.place()).toBe('primary');
    pair.startedAt = 'at noon';
    await pair.until('standby');
  });
});

it('recent writers are forgotten in time', () => {
  const writers = new RecentWriters(1_000);
  writers.add('ann', 0);
  writers.add('bob', 600);
  expect([writers.has('ann', 1_099), writers.has('ann', 1_100), writers.has('bob', 1_600)]).toEqual([
    true,
    false,
    true,
  ]);
  writers.add('cleo', 5_000);
  expect([writers.has('bob', 1_000), writers.has('cleo', 5_001)]).toEqual([false, true]);
});

describe('news of writes', () => {
  it('name everybody who wrote while the news before were sent, once', async () => {
    const sent: string[] = [];
    const gates: PromiseWithResolvers<void>[] = [];
    const news = new WriteNews((payload) => {
      sent.push(payload);
      gates.push(Promise.withResolvers());
      return gates.at(-1)!.promise;
    });
    let told = 0;
    const tell = (id: string): void => void news.tell(id).then(() => told++);
    tell('a');
    tell('b');
    await Promise.resolve();
    await Promise.resolve();
    for (const id of ['c', 'd', 'c']) tell(id);
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect([sent, told]).toEqual([['a,b'], 0]);
    // What cannot be sent does not fail the write.
    gates[0]!.reject(new Error('lost'));
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect([sent, told]).toEqual([['a,b', 'c,d'], 2]);
    gates[1]!.resolve();
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(told).toBe(5);
  });

  it('fit into the payload of a notification', async () => {
    const sent: string[] = [];
    const news = new WriteNews(async (payload) => void sent.push(payload));
    await Promise.all(Array.from({ length: 450 }, (_, n) => news.tell(String(n).padStart(36, '0'))));
    expect(sent.every((payload) => payload.length < 8_000)).toBe(true);
    expect(sent.join(',').split(',')).toHaveLength(450);
  });
});
