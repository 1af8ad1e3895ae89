/** Writes that share a transaction of unknown outcome: a lost connection, a commit that waits, a remote server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { Statements } from '../../../src/database/lanes/statements.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { param, raw, type Sql, sql } from '../../../src/sql.ts';
import { SilentProxy } from '../../support/postgres/silent-proxy.ts';
import { hasPostgres, postgresUrl } from '../../support/store-world.ts';

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i + 1);
const int = (value: number) => param('int8', value);

/**
 * On a busy machine, a shared transaction reaches the 20 ms that the service grants it, and each of its writes is sent alone. The
 * transactions of a test about losses get 20 s, so that the writes share one at any load.
 */
function limitPatiently(): void {
  const sendTogether = Statements.prototype.sendTogether;
  vi.spyOn(Statements.prototype, 'sendTogether').mockImplementation(function (this: Statements, client, statements) {
    const patient = statements.map((each) =>
      each.text.includes("'statement_timeout', '20'") ? raw(each.text.replaceAll("'20'", "'20000'")) : each,
    );
    return sendTogether.call(this, client, patient);
  });
}

describe.skipIf(!hasPostgres)('writes that share a transaction', () => {
  let url: string;
  let db: Database;
  beforeAll(async () => {
    url = await postgresUrl();
    db = await openDatabase({ url });
    for (const statement of [
      'CREATE TABLE shelves (id int PRIMARY KEY)',
      'INSERT INTO shelves SELECT generate_series(1, 10)',
      'CREATE TABLE notes (id int PRIMARY KEY, shelf int REFERENCES shelves DEFERRABLE INITIALLY DEFERRED)',
      'CREATE TABLE log (round int NOT NULL, entry int NOT NULL)',
      `CREATE FUNCTION unreached() RETURNS int LANGUAGE plpgsql
         AS $$ BEGIN RAISE EXCEPTION 'could not connect to server' USING ERRCODE = '08001'; END $$`,
    ])
      await db.run(raw(statement));
  });
  afterEach(() => vi.restoreAllMocks());
  afterAll(() => db?.close());

  const note = (id: number): Sql => sql`INSERT INTO notes (id, shelf) VALUES (${int(id)}, ${int(id)}) RETURNING id`;
  const logged = (round: number, entry: number): Sql =>
    sql`INSERT INTO log (round, entry) VALUES (${int(round)}, ${int(entry)}) RETURNING entry`;

  it('a commit that waits for a row of another transaction fails no other write', async () => {
    const release = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.run(sql`SELECT FROM shelves WHERE id = ${int(3)} FOR UPDATE`);
      held.resolve();
      await release.promise;
    });
    await held.promise;
    const [waiting, ...others] = [3, 1, 2, 4, 5].map((id) => db.write(note(id)));
    expect(await Promise.all(others)).toEqual([[['1']], [['2']], [['4']], [['5']]]);
    release.resolve();
    await holder;
    expect(await waiting).toEqual([['3']]);
  });

  it('a statement whose server is not reached fails the others once only', async () => {
    limitPatiently();
    const unreached = raw('INSERT INTO log (round, entry) VALUES (unreached(), 1)');
    const round = async (number: number) => {
      const [failed, ...others] = await Promise.allSettled([
        db.write(unreached),
        ...upTo(3).map((n) => db.write(logged(number, n))),
      ]);
      expect(failed).toMatchObject({ reason: { kind: 'unavailable' } });
      return others.map(({ status }) => status);
    };
    await round(-1);
    for (const number of [-2, -3, -4]) expect(await round(number)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
  });

  it.each([
    ['server', 2],
    ['service', 5],
  ] as const)('writes are stored once or not at all, at each byte where the %s is cut off', async (sender, step) => {
    limitPatiently();
    const proxy = await SilentProxy.open(url);
    const answered = new Set<number>();
    const first = sender === 'server' ? 1_000 : 2_000;
    let round = first;
    try {
      for (let isCut = true; isCut; round++) {
        // Losses make the next transactions smaller, so each has a service of its own.
        const through = await openDatabase({ url: proxy.url, poolSize: 1 });
        for (const _ of ['first', 'named'])
          await Promise.all([logged(0, 1), logged(0, 2)].map((each) => through.write(each)));
        proxy.cutAfter((round - first) * step, sender);
        const outcomes = await Promise.allSettled(upTo(3).map((n) => through.write(logged(round, n))));
        isCut = outcomes.some(({ status }) => status === 'rejected');
        if (!isCut) answered.add(round);
        await through.close();
      }
    } finally {
      await proxy.close();
    }
    await sleep(100);
    const rows = await db.rows(sql`
      SELECT round, string_agg(entry::text, ' ' ORDER BY entry)
        FROM log
       WHERE round BETWEEN ${int(first)} AND ${int(round)}
       GROUP BY round`);
    const found = new Map(rows.map(([number, entries]) => [Number(number), entries]));
    expect(new Set(found.values())).toEqual(new Set(['1 2 3']));
    for (const each of answered) expect(found.has(each)).toBe(true);
    // Wherever its answer was cut off, the server had them all.
    if (sender === 'server') expect(found.size).toBe(round - first);
    expect(round - first).toBeGreaterThan(20);
  });
});
