// @module-tag long
/** Nothing slow or silent holds up anything else. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, StoreError } from '../../../src/database/contract.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { asCaller } from '../../../src/queued-caller.ts';
import { param, raw, type Sql, sql } from '../../../src/sql.ts';
import { SilentProxy } from '../../support/postgres/silent-proxy.ts';
import { hasPostgres, postgresUrl } from '../../support/store-world.ts';

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
const sleepFor = (seconds: number, name: string): Sql => raw(`SELECT pg_sleep(${seconds})::text, '${name}'`);
const kindOf = (error: unknown): unknown => (error instanceof StoreError ? error.kind : error);

/** Asks again while the read waited too long to count as slow: on a busy machine, the event loop itself may be the wait. */
async function unlessWaited(ask: () => Promise<unknown>): Promise<unknown> {
  for (;;) {
    const outcome = await ask().catch(kindOf);
    if (outcome !== 'unavailable') return outcome;
  }
}

/** Milliseconds. */
async function timeOf(work: Promise<unknown>): Promise<number> {
  const since = performance.now();
  await work;
  return performance.now() - since;
}

describe.runIf(hasPostgres)('the lanes of PostgreSQL', () => {
  let db: Database;
  let other: Database;
  /** Has a statement at work while the other tests run, and nothing else. */
  let alone: Database;
  let long: Promise<unknown>;
  let url: string;
  let keys = 0;
  beforeAll(async () => {
    url = await postgresUrl();
    db = await openDatabase({ url, poolSize: 2, pipelines: 2, slowReads: 2 });
    other = await openDatabase({ url, poolSize: 2, pipelines: 1 });
    alone = await openDatabase({ url, poolSize: 2, pipelines: 2, slowReads: 2 });
    long = alone.rows(sleepFor(3.2, 'long')).catch(kindOf);
    await db.run(raw('CREATE TABLE wares (id int PRIMARY KEY)'));
    await db.run(raw('CREATE TABLE locked (id int PRIMARY KEY)'));
  });
  afterAll(async () => {
    await db?.close();
    await other?.close();
    await alone?.close();
  });

  const cheap = (n: number): Promise<unknown> =>
    db.rows(sql`
      SELECT id
        FROM wares
       WHERE id = ${param('int8', n)}`);

  /** As many slow reads as names: the server answers them after `release`. */
  async function heldReads(names: readonly string[]) {
    const key = ++keys;
    const release = Promise.withResolvers<void>();
    const isHeld = Promise.withResolvers<void>();
    const holder = other.transaction(async (tx) => {
      await tx.run(raw(`SELECT pg_advisory_xact_lock(${key})`));
      isHeld.resolve();
      await release.promise;
    });
    await isHeld.promise;
    const reads = names.map((name) => db.rows(raw(`SELECT pg_advisory_xact_lock_shared(${key})::text, '${name}'`)));
    const answered = async (): Promise<readonly unknown[]> => {
      release.resolve();
      await holder;
      return (await Promise.all(reads)).map(([row]) => row![1]);
    };
    return { answered };
  }

  it('statements of a text that has proved slow leave the lane of unknown texts without being sent', async () => {
    await db.run(raw('CREATE SEQUENCE sent'));
    const slow = raw("SELECT nextval('sent')::text, pg_sleep(0.25)::text");
    const flood = () => Promise.all(Array.from({ length: 12 }, () => db.rows(slow)));
    await asCaller({ id: 'flood', isKept: false }, flood);
    const [[sent]] = (await db.rows(raw('SELECT last_value::text FROM sent'))) as [[string]];
    // Each answer, and the texts that were under way when the first of them was given up.
    expect(Number(sent)).toBeLessThanOrEqual(12 + 3);
  });

  it('fast reads are answered beside unknown slow ones, and each once', async () => {
    await cheap(1);
    const names = ['unknown 1', 'unknown 2', 'unknown 3'];
    const slow = await heldReads(names);
    const took = await timeOf(Promise.all(Array.from({ length: 50 }, (_, n) => cheap(n))));
    expect(took).toBeLessThan(5_000);
    expect(await slow.answered()).toEqual(names);
  });

  it('a locked table holds up its readers only', async () => {
    const release = Promise.withResolvers<void>();
    const isLocked = Promise.withResolvers<void>();
    const lock = other.transaction(async (tx) => {
      await tx.run(raw('LOCK TABLE locked IN ACCESS EXCLUSIVE MODE'));
      isLocked.resolve();
      await release.promise;
    });
    await isLocked.promise;
    const readers = Array.from({ length: 8 }, () => db.rows(raw('SELECT count(*) FROM locked')));
    await pause(60);
    const more = Array.from({ length: 4 }, (_, n) => db.rows(raw(`SELECT ${n}, count(*) FROM locked`)));
    const took = [await timeOf(Promise.all(Array.from({ length: 50 }, (_, n) => cheap(n)))), await timeOf(db.ping())];
    release.resolve();
    await lock;
    expect(Math.max(...took)).toBeLessThan(5_000);
    expect(await Promise.all(readers)).toEqual(readers.map(() => [['0']]));
    expect(await Promise.all(more)).toEqual(more.map((_, n) => [[String(n), '0']]));
  });

  it('unknown slow reads leave few statements at work on the server', async () => {
    const names = Array.from({ length: 12 }, (_, n) => `many ${n}`);
    const slow = await heldReads(names);
    await pause(250);
    const atWork = async (): Promise<number> => {
      const [row] = await other.rows(
        raw(
          `SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%many %' AND state = 'active' AND pid <> pg_backend_pid()`,
        ),
      );
      return Number(row![0]);
    };
    // Two connections of the pool and two of the slow lane; the server cancels the statements given up.
    await expect.poll(atWork, { timeout: 5_000 }).toBeLessThanOrEqual(6);
    expect(await slow.answered()).toEqual(names);
    await Promise.all(Array.from({ length: 20 }, (_, n) => cheap(n)));
  });

  it('a slow read ends at the time limit of its caller, and keeps the connection', async () => {
    const late = await timeOf(
      expect(unlessWaited(() => db.rows(sleepFor(10, 'late'), { lane: 'slow', limitMs: 200 }))).resolves.toBe(
        'time_limit',
      ),
    );
    expect(late).toBeLessThan(5_000);
    expect(await db.rows(sleepFor(0.01, 'in time'), { lane: 'slow', limitMs: 1_000 })).toEqual([['', 'in time']]);
    const [before] = await db.rows(raw("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"), {
      lane: 'slow',
    });
    expect(before).toEqual(['15000']);
  });

  it('a read may have more time than other statements', async () => {
    const shown = raw("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'");
    expect(await db.rows(shown, { lane: 'slow', limitMs: 60_000 })).toEqual([['60000']]);
  });

  it('a read waits for a connection as long as it may take, and then has all its time', async () => {
    const ask = (statement: Sql, limitMs: number) =>
      asCaller({ id: 'ann', isKept: false }, () => db.rows(statement, { lane: 'slow', limitMs }));
    const holders = () => [1, 2].map((n) => ask(sleepFor(0.7, `holder ${n}`), 3_000));
    const first = holders();
    await pause(50);
    const answered: string[] = [];
    await Promise.all([
      ...first.map((holder) => holder.then(() => answered.push('holder'))),
      expect(ask(raw('SELECT 1'), 200).catch(kindOf))
        .resolves.toBe('unavailable')
        .then(() => answered.push('late')),
    ]);
    expect(answered).toEqual(['late', 'holder', 'holder']);
    const second = holders();
    await pause(50);
    expect(await ask(sleepFor(0.5, 'in time'), 1_000)).toEqual([['', 'in time']]);
    await Promise.all(second);
  });

  it('a read that takes longer than its limit fails for its time, and is not asked again', async () => {
    const since = performance.now();
    expect(await db.rows(sleepFor(3, 'too long'), { lane: 'slow', limitMs: 300 }).catch(kindOf)).toBe('time_limit');
    expect(performance.now() - since).toBeLessThan(2_500);
  });

  it('sign-in has a place in every lane that others have taken', async () => {
    const others = [1, 2, 3].map((n) =>
      asCaller({ id: 'ann', isKept: false }, () => db.rows(sleepFor(1, `ann ${n}`), { lane: 'slow' })),
    );
    await pause(50);
    const order: string[] = [];
    const kept = asCaller({ id: '192.0.2.7', isKept: true }, () => db.rows(raw('SELECT 1'), { lane: 'slow' }));
    await Promise.all([
      kept.then(() => order.push('kept')),
      ...others.map((other) => other.then(() => order.push('ann'))),
    ]);
    expect(order[0]).toBe('kept');
  });

  it('the time to make a connection is not time of the read', async () => {
    const proxy = await SilentProxy.open(url, 600);
    const through = await openDatabase({ url: proxy.url, slowReads: 1 });
    try {
      const read = through.rows(sleepFor(0.3, 'connected late'), { lane: 'slow', limitMs: 800 });
      expect(await read).toEqual([['', 'connected late']]);
    } finally {
      await through.close();
      await proxy.close();
    }
  });

  it('two limits that take turns on one connection both hold', async () => {
    const took = [];
    for (const limit of [150, 3_000, 150, undefined, 150])
      took.push(await unlessWaited(() => db.rows(sleepFor(0.3, 'in turn'), { lane: 'slow', limitMs: limit })));
    const done = [['', 'in turn']];
    expect(took).toEqual(['time_limit', done, 'time_limit', done, 'time_limit']);
  });

  it('a read whose value cannot be sent keeps its connection', async () => {
    const process = async () => (await other.rows(raw('SELECT pg_backend_pid()')))[0]![0];
    const isKept = async (): Promise<boolean> => {
      const before = await process();
      await expect(other.rows(sql`SELECT ${param('jsonb', { a: 1n })}`)).rejects.toThrow('BigInt');
      await pause(60);
      return (await process()) === before;
    };
    // On a busy machine, a connection can be silent for so long that it is given up.
    await expect.poll(isKept).toBe(true);
  });

  it('the lock_timeout of the operator makes a write unavailable', async () => {
    const impatient = await openDatabase({ url: url.replace('options=', 'options=-c%20lock_timeout%3D50%20') });
    const locked = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.run(raw('LOCK TABLE wares'));
      locked.resolve();
      await asked.promise;
    });
    try {
      await locked.promise;
      expect(await impatient.write(raw('INSERT INTO wares (id) VALUES (77)')).catch(kindOf)).toBe('unavailable');
    } finally {
      asked.resolve();
      await holder;
      await impatient.close();
    }
  });

  it('the quick lane rejects a statement that writes', async () => {
    const failure = await db.rows(raw('DELETE FROM wares RETURNING id')).catch((error: Error) => error.message);
    expect(failure).toContain('only SELECTs can be asked twice');
  });

  it('silent connections are given up: reads are sent again, writes fail as unavailable', async () => {
    const proxy = await SilentProxy.open(url);
    const through = await openDatabase({ url: proxy.url, poolSize: 2, pipelines: 2 });
    try {
      await Promise.all([through.rows(raw('SELECT 1')), through.rows(raw('SELECT 2')), through.run(raw('SELECT 3'))]);
      expect(proxy.silence()).toBeGreaterThanOrEqual(3);
      const since = performance.now();
      const write = through.run(raw('INSERT INTO wares VALUES (77)')).catch(kindOf);
      expect(await Promise.all([1, 2, 3, 4].map(() => through.rows(raw('SELECT 7'))))).toEqual([
        [['7']],
        [['7']],
        [['7']],
        [['7']],
      ]);
      expect(await write).toBe('unavailable');
      await through.ping();
      expect(performance.now() - since).toBeLessThan(8_000);
      await through.run(raw('INSERT INTO wares VALUES (77)'));
    } finally {
      await through.close();
      await proxy.close();
    }
  });

  it('a statement that only takes long is answered', async () => {
    expect(await long).toEqual([['', 'long']]);
  });
});
