// @module-tag long
/** The turns of callers on the one connection of the embedded engine. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database, Lane, ReadOptions, Transaction } from '../../../src/database/contract.ts';
import { asCaller } from '../../../src/queued-caller.ts';
import { raw, sql } from '../../../src/sql.ts';
import { openEmbeddedDatabase } from '../../support/embedded/embedded.ts';

let db: Database;
beforeAll(async () => {
  db = await openEmbeddedDatabase();
});
afterAll(() => db?.close());

const ask = (id: string, text: string, options: ReadOptions): Promise<unknown> =>
  asCaller({ id, isKept: false }, () => db.rows(raw(text), options));
/** It takes long beside five short reads, and a caller rests for as long as it has taken. */
const SLOW = "SELECT count(*) FROM generate_series(1, 300000) AS n WHERE n::text LIKE '%1%'";

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

it.each(['quick', 'estimate', 'slow'] as const)(
  'five %s reads in a row wait for one turn of the long batches of another caller',
  async (lane) => {
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
    const inFive = await turnsBesideFiveReads(() => turns, lane);
    isOver = true;
    await Promise.all(batches);
    expect(inFive).toBe(1);
  },
);

it('an estimate of another caller is not held up by gathered ones', async () => {
  const estimate = (id: string): Promise<unknown> => ask(id, 'SELECT 7', { lane: 'estimate' });
  for (let i = 0; i < 3; i++) await estimate('ann');
  const events: string[] = [];
  const asked = [...Array<string>(8).fill('ann'), 'bob'].map((id) => estimate(id).then(() => events.push(id)));
  await Promise.all(asked);
  expect(events.indexOf('bob')).toBeLessThan(4);
});

/** The most turns of another caller beside five reads in a row, until that caller has had two. */
async function turnsBesideFiveReads(turns: () => number, lane?: Lane): Promise<number> {
  const before: number[] = [];
  while (turns() < 2) {
    await ask('bob', 'SELECT 1', { lane });
    before.push(turns());
  }
  return Math.max(...before.slice(5).map((count, i) => count - before[i]!));
}

let texts = 0;
/** The planner expects little of it, and no text comes twice. */
const unknown = (rows: number) =>
  raw(`SELECT count(*) FROM generate_series(1, (SELECT ${rows})) AS n WHERE n::text LIKE '%${++texts}%'`);

it.each([
  ['query that seems quick', () => db.rows(unknown(250_000), { lane: 'query', limitMs: 4_000 })],
  ['read of unknown speed', () => db.rows(unknown(250_000))],
  ['transaction of one long statement', () => db.transaction((tx) => tx.rows(unknown(250_000)))],
])('five reads in a row wait for one %s of another caller', async (_kind, work) => {
  for (let i = 0; i < 3; i++) await ask('bob', 'SELECT 1', {});
  let done = 0;
  let isOver = false;
  const loop = async (): Promise<void> => {
    for (; !isOver; done++) await work();
  };
  const loops = [1, 2, 3, 4].map(() => asCaller({ id: 'ann', isKept: false }, loop));
  const inFive = await turnsBesideFiveReads(() => done);
  isOver = true;
  await Promise.all(loops);
  expect(inFive).toBe(1);
});

it('a read waits for one of the reads that another caller has sent at once', async () => {
  const events: string[] = [];
  const others = Array.from({ length: 20 }, () =>
    asCaller({ id: 'ann', isKept: false }, () => db.rows(unknown(50_000))).then(() => events.push('other')),
  );
  await ask('bob', 'SELECT 1', {}).then(() => events.push('own'));
  await Promise.all(others);
  expect(events.indexOf('own')).toBeLessThan(4);
});

it('a read that takes all of its time holds up another caller for a slice at a time', async () => {
  // The planner expects it to be cheap.
  const endless = sql`SELECT count(*) FROM generate_series(1, 20000) AS n WHERE length(repeat(n::text, 1000000)) > 0 AND ${db.statementInTime!}`;
  const options = { lane: 'slow', limitMs: 1_500 } as const;
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
