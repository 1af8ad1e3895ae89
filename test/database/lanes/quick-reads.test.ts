/** Quick SELECTs go to the database together; a slow or wrong one harms no other. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { StatementHistory, Statements } from '../../../src/database/lanes/statements.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { param, raw, type Sql, sql } from '../../../src/sql.ts';
import { SilentProxy } from '../../support/postgres/silent-proxy.ts';
import { hasPostgres, postgresUrl } from '../../support/store-world.ts';

describe.runIf(hasPostgres)('quick SELECTs of a turn', () => {
  let db: Database;
  let url: string;
  beforeAll(async () => {
    url = await postgresUrl();
    db = await openDatabase({ url, poolSize: 2, pipelines: 1 });
  });
  afterEach(() => vi.restoreAllMocks());
  afterAll(() => db?.close());

  /** The text that `of` makes is quick from now on. */
  const quick = async (of: (n: number) => Sql, on = db): Promise<void> => {
    // A busy machine takes more than three.
    const sent = vi.spyOn(Statements.prototype, 'sendTogether');
    const wereTogether = (): boolean => sent.mock.calls.some(([, statements]) => statements.length > 1);
    for (let i = 0; !wereTogether() && i < 200; i++) {
      for (let k = 0; k < 3; k++) await on.rows(of(1));
      await Promise.all([on.rows(of(1)), on.rows(of(1))]);
    }
    expect(wereTogether()).toBe(true);
    sent.mockRestore();
  };
  const all = (statements: readonly Sql[]): Promise<readonly unknown[]> =>
    Promise.all(
      statements.map((each) =>
        db.rows(each).then(
          ([row]) => row![0],
          (error: Error) => error.message,
        ),
      ),
    );
  const half = (n: number): Sql => sql`SELECT 12 / ${param('int8', n)}`;

  it('quick SELECTs are sent together, each with its own answer', async () => {
    await quick(half);
    // A busy machine may have made it slow again.
    vi.spyOn(StatementHistory.prototype, 'speedOf').mockReturnValue('quick');
    const sent = vi.spyOn(Statements.prototype, 'sendTogether');
    expect(await all([1, 2, 3, 4].map(half))).toEqual(['12', '6', '4', '3']);
    expect(sent.mock.calls.flatMap(([, statements]) => statements.length)).toEqual([4]);
  });

  it('a SELECT that fails leaves the others answered', async () => {
    await quick(half);
    expect(await all([2, 3, 0, 4].map(half))).toEqual(['6', '4', 'division by zero', '3']);
    expect(await all([2, 0].map(half))).toEqual(['6', 'division by zero']);
  });

  it('a lost connection with many SELECTs under way leaks no listeners', async () => {
    await quick(half);
    const warnings: string[] = [];
    const note = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', note);
    const end = sql`SELECT pg_terminate_backend(pg_backend_pid())::text WHERE ${param('int8', 1)} = 1`;
    for (let round = 0; round < 3; round++) {
      const reads = Array.from({ length: 80 }, (_, i) => half(1 + (i % 6)));
      expect((await all([...reads.slice(0, 40), end, ...reads.slice(40)])).length).toBe(81);
    }
    expect(await all([half(2)])).toEqual(['6']);
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });

  it('a SELECT that cannot be sent leaves the others answered', async () => {
    const plus = (n: unknown): Sql => sql`SELECT 1 + ${param('int8', n)}`;
    await quick(plus);
    const wrong = db.rows(plus({ toPostgres: () => assert.fail('not sendable') })).catch(() => undefined);
    expect(await all([plus(1), plus(2), half(4)])).toEqual(['2', '3', '3']);
    void wrong;
  });

  it('a SELECT that is slow this time does not hold up the others', async () => {
    const lock = 'hashtext(current_schema())';
    const slowBeyondOne = (n: number): Sql =>
      sql`SELECT CASE WHEN ${param('int8', n)} > 1 THEN ${raw(`pg_advisory_xact_lock_shared(${lock})`)}::text ELSE '' END`;
    await quick(slowBeyondOne);
    await quick(half);
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    try {
      await holder.query(`SELECT pg_advisory_lock(${lock})`);
      const slow = all([slowBeyondOne(4)]);
      expect(await all([half(2), half(3), slowBeyondOne(1), half(4)])).toEqual(['6', '4', '', '3']);
      // The slow SELECT has one before it and one behind it.
      const more = [half(6), slowBeyondOne(4), half(12)];
      const [first, middle, last] = more.map((each) => db.rows(each).then(([row]) => row![0]));
      expect([await first, await last]).toEqual(['2', '1']);
      await holder.query(`SELECT pg_advisory_unlock(${lock})`);
      expect([await slow, await middle]).toEqual([[''], '']);
    } finally {
      await holder.end();
    }
  });

  it('SELECTs of a lost connection are sent again', async () => {
    await quick(half);
    const [[pid]] = (await db.rows(raw('SELECT pg_backend_pid()'))) as [[string]];
    const lost = all([2, 3, 4].map(half));
    await db.run(raw(`SELECT pg_terminate_backend(${pid})`));
    expect(await lost).toEqual(['6', '4', '3']);
    expect(await all([2, 3, 4].map(half))).toEqual(['6', '4', '3']);
  });

  it('SELECTs of a silent server are sent again', async () => {
    const proxy = await SilentProxy.open(url);
    const through = await openDatabase({ url: proxy.url, poolSize: 2, pipelines: 1 });
    try {
      await quick(half, through);
      proxy.silence();
      const answers = [2, 3, 4].map((n) => through.rows(half(n)));
      expect(await Promise.all(answers)).toEqual([[['6']], [['4']], [['3']]]);
    } finally {
      await through.close();
      await proxy.close();
    }
  });

  it('SELECTs return the new columns after a migration', async () => {
    await db.run(raw('CREATE TABLE shelves (id int)'));
    await db.run(raw('INSERT INTO shelves VALUES (1)'));
    const shelves = (n: number): Sql => sql`SELECT * FROM shelves WHERE id = ${param('int8', n)}`;
    await quick(shelves);
    await db.run(raw(`ALTER TABLE shelves ADD COLUMN place text DEFAULT 'left'`));
    const found = await Promise.all([1, 1, 1].map((n) => db.rows(shelves(n))));
    expect(found).toEqual([1, 1, 1].map(() => [['1', 'left']]));
  });
});
