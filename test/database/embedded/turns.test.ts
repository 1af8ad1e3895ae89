/** The turns of callers on the one connection of the embedded engine. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { asCaller } from '../../../src/caller.ts';
import type { Database, ReadOptions, Transaction } from '../../../src/database/contract.ts';
import { raw, sql } from '../../../src/sql.ts';
import { openEmbeddedDatabase } from '../../support/embedded.ts';

let db: Database;
beforeAll(async () => {
  db = await openEmbeddedDatabase();
});
afterAll(() => db?.close());

const ask = (id: string, text: string, options: ReadOptions): Promise<unknown> =>
  asCaller({ id, isKept: false }, () => db.rows(raw(text), options));
/** It takes long beside five short reads, and a caller rests for as long as it has taken. */
const SLOW = "SELECT count(*) FROM generate_series(1, 1500000) AS n WHERE n::text LIKE '%1%'";

it.each(['quick', 'query', 'slow'] as const)(
  'five %s reads in a row wait for one slow read of another caller',
  async (lane) => {
    const read = () => ask('bob', 'SELECT 1', { lane, limitMs: 2_000 });
    for (let i = 0; i < 3; i++) await read();
    const events: string[] = [];
    const slow = [1, 2].map(() => ask('ann', SLOW, { lane: 'slow' }).then(() => events.push('slow')));
    for (let i = 0; i < 5; i++) {
      await read();
      events.push('read');
    }
    await Promise.all(slow);
    expect(events.slice(0, events.lastIndexOf('read')).filter((event) => event === 'slow').length).toBeLessThan(2);
  },
);

it('five reads in a row wait for one turn of the long batches of another caller', async () => {
  const STEP = raw("SELECT count(*) FROM generate_series(1, 5000) AS n WHERE n::text LIKE '%1%'");
  let isOver = false;
  let turns = 0;
  const batch = async (): Promise<void> => {
    let attempts = 0;
    const work = async (tx: Transaction): Promise<void> => {
      // The first turn of each is short.
      if (attempts++ > 0) turns++;
      while (!isOver) await tx.rows(STEP);
    };
    await db.transaction(work, { limitMs: 60_000 });
  };
  const batches = [1, 2, 3, 4].map(() => asCaller({ id: 'ann', isKept: false }, batch));
  /** The turns before each read. */
  const before: number[] = [];
  while (turns < 6) {
    await ask('bob', 'SELECT 1', {});
    before.push(turns);
  }
  isOver = true;
  await Promise.all(batches);
  const inFive = before.slice(5).map((count, i) => count - before[i]!);
  expect(Math.max(...inFive)).toBe(1);
});

it('a read that takes all of its time holds up another caller for a slice at a time', async () => {
  // The planner expects it to be cheap.
  const endless = sql`SELECT count(*) FROM generate_series(1, 20000) AS n WHERE length(repeat(n::text, 1000000)) > 0 AND ${db.statementInTime!}`;
  const options = { lane: 'slow', limitMs: 3_000 } as const;
  let isOver = false;
  const slow = asCaller({ id: 'ann', isKept: false }, () => db.rows(endless, options)).finally(() => {
    isOver = true;
  });
  const isRefused = expect(slow).rejects.toMatchObject({ kind: 'time_limit' });
  let turns = 0;
  while (!isOver) {
    await ask('bob', 'SELECT 1', {});
    turns++;
    await new Promise((done) => setImmediate(done));
  }
  await isRefused;
  expect(turns).toBeGreaterThan(3);
});
