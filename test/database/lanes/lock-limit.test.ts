/** A write waits a second for a lock, in every way that writes are sent. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, StoreError } from '../../../src/database/contract.ts';
import { param, raw, type Sql, sql } from '../../../src/sql.ts';
import { hasPostgres, openKind } from '../../support/store-world.ts';
import { until } from '../../support/until.ts';

const int = (value: number) => param('int8', value);
const kindOf = (error: unknown): unknown => (error instanceof StoreError ? error.kind : error);

describe.runIf(hasPostgres)('a record that another transaction holds', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind('postgres');
    await db.run(raw('CREATE TABLE notes (id int PRIMARY KEY, score int NOT NULL)'));
    await db.run(raw('INSERT INTO notes SELECT i, 0 FROM generate_series(1, 20) AS i'));
  });
  afterAll(() => db?.close());

  /** Runs the work while the first note is held, and longer than a write waits. */
  async function whileHeld<T>(work: (release: () => void) => Promise<T>): Promise<T> {
    const [isHeld, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holder = db.transaction(
      async (tx) => {
        await tx.run(raw('SELECT FROM notes WHERE id = 1 FOR UPDATE'));
        isHeld.resolve();
        await isOver.promise;
      },
      { unlimited: true },
    );
    await isHeld.promise;
    const done = await work(isOver.resolve);
    isOver.resolve();
    await holder;
    return done;
  }
  const score = (id: number): Sql => sql`UPDATE notes SET score = score + 1 WHERE id = ${int(id)} RETURNING score`;
  const isWaiting = async (): Promise<boolean> => {
    const [row] = await db.rows(
      raw(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE notes%'`),
      { lane: 'urgent' },
    );
    return row![0] !== '0';
  };

  it('each kind of write is unavailable after a second, and stores nothing', async () => {
    const outcomes = await whileHeld(() => {
      const writes: readonly (() => Promise<unknown>)[] = [
        () => db.write(score(1)),
        () => db.write(score(1), { isDivided: true }),
        () => db.run(score(1)),
        () => db.transaction((tx) => tx.run(score(1))),
        () => Promise.all([db.write(score(1)), db.write(score(2))]),
      ];
      return Promise.all(
        writes.map(async (write) => {
          const since = performance.now();
          const kind = await write().catch(kindOf);
          return { kind, ms: performance.now() - since };
        }),
      );
    });
    expect(outcomes.map(({ kind }) => kind)).toEqual(outcomes.map(() => 'unavailable'));
    // The server finds deadlocks after a second, and a statement without a limit for locks ends after 15.
    for (const { ms } of outcomes) expect(ms).toBeGreaterThan(1_000);
    for (const { ms } of outcomes) expect(ms).toBeLessThan(6_000);
    expect(await db.rows(raw('SELECT id, score FROM notes WHERE score > 0'))).toEqual([['2', '1']]);
  });

  it('a transaction without limits waits until the lock is free', async () => {
    const written = await whileHeld(async (release) => {
      const waiting = db.transaction((tx) => tx.rows(score(1)), { unlimited: true });
      await until('it waits', isWaiting);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(await isWaiting()).toBe(true);
      release();
      return waiting;
    });
    expect(written).toEqual([['1']]);
  });
});
