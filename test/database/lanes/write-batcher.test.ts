// @module-tag long
/** Concurrent writes share a transaction, and each gets its own answer. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Database, QueueFull, StoreError } from '../../../src/database/contract.ts';
import { StatementHistory } from '../../../src/database/lanes/statements.ts';
import { WriteBatcher } from '../../../src/database/lanes/write-batcher.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { type Outcome, TogetherError } from '../../../src/database/pg-internals.ts';
import type { Lease } from '../../../src/database/transaction.ts';
import { separateTriggeredTables } from '../../../src/migrations/adopt/triggered-tables.ts';
import { ident, param, raw, type Sql, sql, text } from '../../../src/sql.ts';
import { answered, useOwnClock } from '../../support/own-clock.ts';
import { SilentProxy } from '../../support/postgres/silent-proxy.ts';
import { hasPostgres, KINDS, openKind, postgresUrl } from '../../support/store-world.ts';

const TABLES = [
  'CREATE TABLE shelves (id int PRIMARY KEY)',
  'INSERT INTO shelves SELECT generate_series(1, 10)',
  `CREATE TABLE notes (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, code text UNIQUE,
                       shelf int REFERENCES shelves DEFERRABLE INITIALLY DEFERRED)`,
];
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i + 1);
const int = (value: number) => param('int8', value);
const insert = (id: number): Sql => sql`INSERT INTO notes (id) VALUES (${int(id)}) RETURNING id`;
const coded = (id: number, code: string): Sql =>
  sql`INSERT INTO notes (id, code) VALUES (${int(id)}, ${text(code)}) RETURNING id`;
const shelved = (id: number, shelf: number): Sql =>
  sql`INSERT INTO notes (id, shelf) VALUES (${int(id)}, ${int(shelf)}) RETURNING id`;
const increment = (id: number): Sql => sql`UPDATE notes SET n = n + 1 WHERE id = ${int(id)} RETURNING id, n`;

/** The kind of the error, or the first cell of each row. */
async function outcomeOf(work: ReturnType<Database['write']>): Promise<unknown> {
  try {
    return (await work).map(([cell]) => cell);
  } catch (error) {
    return error instanceof StoreError ? error.kind : error;
  }
}

describe.each(KINDS)('writes at the same time on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    for (const statement of TABLES) await db.run(raw(statement));
  });
  afterAll(() => db?.close());
  beforeEach(async () => {
    await db.run(raw('DELETE FROM notes'));
  });

  const all = (statements: readonly Sql[]): Promise<unknown[]> =>
    Promise.all(statements.map((statement) => outcomeOf(db.write(statement))));
  const ids = async (): Promise<readonly number[]> =>
    (await db.rows(raw('SELECT id FROM notes ORDER BY id'))).map(([id]) => Number(id));
  const transactions = async (): Promise<number> =>
    Number((await db.rows(raw('SELECT count(DISTINCT xmin::text) FROM notes')))[0]![0]);

  it('concurrent writes get their own rows, in few transactions', async () => {
    expect(await all(upTo(100).map(insert))).toEqual(upTo(100).map((id) => [String(id)]));
    expect(await ids()).toEqual(upTo(100));
    expect(await transactions()).toBeLessThan(20);
  });

  it('each write gets the number of its rows', async () => {
    await all(upTo(10).map(insert));
    const several = (to: number): Sql =>
      sql`UPDATE notes SET n = 5 WHERE id <= ${int(to)} RETURNING id, (SELECT ${text(`${to}`)})`;
    const asked = [3, 0, 10, 0, 1];
    const answers = await Promise.all(asked.map((to) => db.write(several(to))));
    expect(answers.map((rows) => rows.map(([, name]) => name))).toEqual(
      asked.map((to) => upTo(to).map(() => String(to))),
    );
  });

  it('writes of one row go one after the other', async () => {
    await db.write(insert(1));
    await Promise.all(upTo(40).map(() => db.write(increment(1), { row: '1' })));
    expect(await db.rows(raw('SELECT n FROM notes'))).toEqual([['40']]);
  });

  it('writes in any order do not wait long for the rows of each other', async () => {
    await all(upTo(20).map(insert));
    const random = upTo(400).map((n) => ((n * 7_919) % 20) + 1);
    await Promise.all(random.map((id) => db.write(increment(id), { row: String(id) })));
    expect(await db.rows(raw('SELECT sum(n) FROM notes'))).toEqual([['400']]);
  });

  it('a write that violates a constraint leaves the others written once', async () => {
    await db.write(coded(1_000, 'taken'));
    await all(upTo(20).map(insert));
    const answers = await all([
      ...upTo(20).map(increment),
      coded(1_001, 'taken'),
      ...upTo(5).map((n) => coded(2_000 + n, `free ${n}`)),
    ]);
    expect(answers[20]).toBe('unique');
    expect(answers.filter((answer) => !Array.isArray(answer))).toHaveLength(1);
    expect(await db.rows(raw('SELECT DISTINCT n FROM notes WHERE id <= 20'))).toEqual([['1']]);
    expect(await ids()).toEqual([...upTo(20), 1_000, ...upTo(5).map((n) => 2_000 + n)]);
  });

  it('a write that fails at the commit leaves the others written', async () => {
    const answers = await all([...upTo(10).map((id) => shelved(id, id)), shelved(11, 11), shelved(12, 2)]);
    expect(answers).toEqual([...upTo(10).map((id) => [String(id)]), 'foreign_key', ['12']]);
    expect(await ids()).toEqual([...upTo(10), 12]);
  });

  it('a write may have no parameters, the first time and later', async () => {
    for (const round of [1, 2, 3]) {
      const plain = upTo(5).map((n) => raw(`INSERT INTO notes (id) VALUES (${100 * round + n}) RETURNING id`));
      expect(await all([...plain, insert(round)])).toEqual([
        ...upTo(5).map((n) => [String(100 * round + n)]),
        [String(round)],
      ]);
    }
  });

  it('a write may be empty', async () => {
    expect(await all([insert(1), raw(''), insert(2), raw('-- nothing'), insert(3)])).toEqual([
      ['1'],
      [],
      ['2'],
      [],
      ['3'],
    ]);
  });

  it('a wrong statement fails alone', async () => {
    const answers = await all([insert(1), raw('INSERT INTO notes (nothing) VALUES (1)'), insert(2)]);
    expect(answers[1]).toMatchObject({ message: expect.stringContaining('nothing') });
    expect([answers[0], answers[2]]).toEqual([['1'], ['2']]);
    expect(await all([insert(3), insert(4)])).toEqual([['3'], ['4']]);
  });

  it('a statement whose value cannot be sent fails alone', async () => {
    const unsendable = { toPostgres: () => assert.fail('not sendable') };
    const wrong = sql`INSERT INTO notes (code) VALUES (${param('text', unsendable)}) RETURNING id`;
    const answers = await all([insert(1), wrong, insert(2)]);
    expect([answers[0], answers[2]]).toEqual([['1'], ['2']]);
    expect(answers[1]).toBeInstanceOf(Error);
  });

  it('a transaction rejects a batched write', async () => {
    await expect(db.transaction(() => db.write(insert(1)))).rejects.toThrow('only the transaction itself');
  });

  it('writes return the new columns after a migration', async () => {
    const everything = (id: number): Sql => sql`INSERT INTO notes (id) VALUES (${int(id)}) RETURNING *`;
    for (const id of [1, 3]) await Promise.all([db.write(everything(id)), db.write(everything(id + 1))]);
    await db.run(raw("ALTER TABLE notes ADD COLUMN later text DEFAULT 'new'"));
    const [first, second] = await Promise.all([db.write(everything(5)), db.write(everything(6))]);
    expect([first![0]!.at(-1), second![0]!.at(-1)]).toEqual(['new', 'new']);
  });
});

describe.skipIf(!hasPostgres)('writes beside one that takes long', () => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind('postgres');
    for (const statement of TABLES) await db.run(raw(statement));
  });
  afterAll(() => db?.close());
  beforeEach(async () => {
    await db.run(raw('DELETE FROM notes'));
  });

  it('writes do not wait for a row that another transaction holds', async () => {
    await Promise.all(upTo(10).map((id) => db.write(insert(id))));
    const release = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.run(sql`UPDATE notes SET n = 100 WHERE id = ${int(5)}`);
      held.resolve();
      await release.promise;
    });
    await held.promise;
    let isWritten = false;
    const waiting = db.write(increment(5), { row: '05' }).then((rows) => {
      isWritten = true;
      return rows;
    });
    const others = upTo(10).filter((id) => id !== 5);
    await Promise.all(others.map((id) => db.write(increment(id), { row: String(id).padStart(2, '0') })));
    expect(isWritten).toBe(false);
    release.resolve();
    await holder;
    expect(await waiting).toEqual([['5', '101']]);
  });

  it('writes do not wait for a slow statement', async () => {
    await db.run(raw('CREATE TABLE ends (at int)'));
    // No wait for a lock: the statement is at work until it sees a row.
    await db.run(
      raw(`CREATE FUNCTION until_ended() RETURNS int LANGUAGE plpgsql
             AS $$ BEGIN WHILE NOT EXISTS (SELECT FROM ends) LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN 1; END $$`),
    );
    const slow = raw('INSERT INTO notes (id) VALUES (until_ended()) RETURNING id');
    const [last, ...others] = [slow, ...upTo(8).map((n) => insert(n + 1))].map((each) => db.write(each));
    expect(await Promise.all(others)).toEqual(upTo(8).map((n) => [[String(n + 1)]]));
    await db.run(raw('INSERT INTO ends VALUES (1)'));
    expect(await last).toEqual([['1']]);
  });

  it('writes survive a statement that exhausts its resources', async () => {
    await db.run(
      raw(`CREATE OR REPLACE FUNCTION exhausted() RETURNS int LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'too large' USING ERRCODE = '53400'; END $$`),
    );
    const exhausting = raw('INSERT INTO notes (id) VALUES (exhausted()) RETURNING id');
    const works = [insert(1), exhausting, insert(2)].map((each) => outcomeOf(db.write(each)));
    expect(await Promise.all(works)).toEqual([['1'], 'unavailable', ['2']]);
  });

  it('a table with triggers, or whose deletes reach one, gets a transaction for each write', async () => {
    const url = await postgresUrl();
    const own = await openDatabase({ url });
    const made = [
      ...TABLES,
      'CREATE TABLE plain (id int PRIMARY KEY)',
      'CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$',
      'CREATE TRIGGER noted BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION nothing()',
      'CREATE TABLE owners (id int PRIMARY KEY)',
      'ALTER TABLE notes ADD owner int REFERENCES owners ON DELETE CASCADE',
      'CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id)',
      'CREATE TABLE part PARTITION OF parted DEFAULT',
      'CREATE TRIGGER noted BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION nothing()',
      'CREATE TABLE ruled (id int PRIMARY KEY)',
      'CREATE RULE noted AS ON UPDATE TO ruled DO ALSO SELECT 1',
    ];
    for (const statement of made) await own.run(raw(statement));
    await own.close();
    const opened = await openDatabase({ url });
    await separateTriggeredTables(opened);
    try {
      const counts = [];
      for (const table of ['notes', 'owners', 'parted', 'ruled', 'plain', 'shelves']) {
        const into = (id: number): Sql => sql`INSERT INTO ${ident(table)} (id) VALUES (${int(id)}) RETURNING id`;
        await Promise.all(upTo(20).map((n) => opened.write(into(100 + n), { table })));
        const [row] = await opened.rows(sql`SELECT count(DISTINCT xmin::text) FROM ${ident(table)} WHERE id > 100`);
        counts.push(Number(row![0]));
      }
      // No delete of a shelf deletes or changes a note.
      expect(counts).toEqual([20, 20, 20, 20, 1, 1]);
    } finally {
      await opened.close();
    }
  });

  it('failed batches leave no uncounted statement prepared', async () => {
    const counted = await openDatabase({ url: await postgresUrl(), poolSize: 1, preparedStatements: 40 });
    try {
      for (const statement of TABLES) await counted.run(raw(statement));
      const named = (n: number): Sql => sql`SELECT ${text('a')} AS ${ident(`a${n}`)}`;
      for (const round of upTo(20))
        for (const _ of ['first', 'named'])
          await Promise.allSettled([
            ...upTo(10).map((n) => counted.write(named(100 * round + n))),
            counted.write(raw(`SELECT 1 / (length('${round}') - length('${round}'))`)),
            ...upTo(10).map((n) => counted.write(named(100 * round + 50 + n))),
          ]);
      await counted.write(named(1));
      const prepared = await counted.transaction((tx) => tx.rows(raw('SELECT count(*) FROM pg_prepared_statements')));
      expect(Number(prepared[0]![0])).toBeLessThanOrEqual(42);
    } finally {
      await counted.close();
    }
  });

  it('a batch may be larger than the number of prepared statements', async () => {
    const few = await openDatabase({ url: await postgresUrl(), preparedStatements: 2 });
    try {
      for (const _ of upTo(4)) {
        const answers = await Promise.all(
          upTo(9).map((n) => few.write(sql`SELECT ${text(`${n}`)} AS ${ident(`b${n}`)}`)),
        );
        expect(answers).toEqual(upTo(9).map((n) => [[`${n}`]]));
      }
    } finally {
      await few.close();
    }
  });

  const error = (severity: string, code: string): Buffer =>
    headed('E', Buffer.from(`S${severity}\0V${severity}\0C${code}\0Mserver connection crashed\0\0`));
  const ready = (): Buffer => headed('Z', Buffer.from('I'));
  const headed = (type: string, body: Buffer): Buffer => {
    const head = Buffer.from(`${type}\0\0\0\0`);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  it.each([
    ['a crash that a pooler reports', error('FATAL', 'XX000'), false],
    ['one after which it is ready', Buffer.concat([error('FATAL', '58000'), ready()]), true],
    ['a loss of another server', Buffer.concat([error('ERROR', '08006'), ready()]), true],
    ['a shutdown', Buffer.concat([error('ERROR', '57P01'), ready()]), true],
    ['bytes that are not a message', headed('~', Buffer.alloc(8)), false],
    ['nothing', Buffer.alloc(0), false],
  ])('writes whose answer is lost after the commit are written once (%s)', async (_, bytes, stays) => {
    const url = await postgresUrl();
    const proxy = await SilentProxy.open(url);
    const through = await openDatabase({ url: proxy.url, poolSize: 1 });
    try {
      for (const statement of TABLES) await through.run(raw(statement));
      await Promise.all(upTo(3).map((id) => through.write(insert(id))));
      proxy.replaceNext(bytes, { stays });
      const works = upTo(3).map((id) => outcomeOf(through.write(increment(id))));
      expect(await Promise.all(works)).toEqual(['unavailable', 'unavailable', 'unavailable']);
      expect(await through.rows(raw('SELECT DISTINCT n FROM notes'))).toEqual([['1']]);
    } finally {
      await through.close();
      await proxy.close();
    }
  });

  it('a lost connection leaves all writes of a batch unknown, and unrepeated', async () => {
    const own = raw('SELECT pg_backend_pid()');
    const ending = raw('INSERT INTO notes (id) SELECT 1 WHERE pg_terminate_backend(pg_backend_pid()) RETURNING id');
    const works = [insert(2), ending, insert(3)].map((each) => outcomeOf(db.write(each)));
    expect(await Promise.all(works)).toEqual(['unavailable', 'unavailable', 'unavailable']);
    expect(await db.rows(raw('SELECT id FROM notes'))).toEqual([]);
    expect(await db.rows(own)).toHaveLength(1);
    expect(await outcomeOf(db.write(insert(4)))).toEqual(['4']);
  });

  it('a write of a tenant gets its own transaction, and the plan that it asks for', async () => {
    const asked = sql`INSERT INTO notes (id) VALUES (${int(1)}) RETURNING current_setting('plan_cache_mode')`;
    const divided = (statement: Sql) => db.write(statement, { isDivided: true, plan: 'generic' });
    const [[mode]] = await Promise.all([divided(asked), ...upTo(19).map((n) => divided(insert(n + 1)))]);
    expect(mode).toEqual(['force_generic_plan']);
    expect(await db.rows(raw('SELECT count(DISTINCT xmin::text) FROM notes'))).toEqual([['20']]);
    const others = upTo(20).map(() => db.write(raw("SELECT current_setting('plan_cache_mode')")));
    expect(new Set((await Promise.all(others)).flat(2))).toEqual(new Set(['auto']));
  });

  it('a batch leaves no limit behind on its connection', async () => {
    await Promise.all(upTo(40).map((id) => db.write(insert(id))));
    const isUnlimited = raw(`
      SELECT 1 / (current_setting('lock_timeout') = '1200ms' AND current_setting('statement_timeout') = '15s')::int`);
    const found = await Promise.allSettled(upTo(16).map(() => db.run(isUnlimited)));
    expect(new Set(found.map(({ status }) => status))).toEqual(new Set(['fulfilled']));
  });
});

describe('a write batcher', () => {
  useOwnClock();

  const ANSWER: Outcome = { rows: [], tag: 'UPDATE 1' };
  const LIMITS = raw('limits');
  const ONE = { connections: 1, history: new StatementHistory() };

  interface Recording {
    /** Milliseconds of a transaction of so many statements. */
    readonly took?: (count: number) => number;
  }

  /** Records the sent texts, a list for each transaction. */
  function recorded(fail: (texts: readonly string[]) => Error | undefined = () => undefined, more: Recording = {}) {
    const { took = () => 1 } = more;
    const sent: (readonly string[])[] = [];
    const released: boolean[] = [];
    const lease = async (): Promise<Lease> => ({
      send: () => Promise.reject(new Error('not used')),
      async sendTogether(statements) {
        const texts = statements.map((statement) => statement.text);
        sent.push(texts);
        await new Promise((resolve) => setTimeout(resolve, took(texts.length - 1)));
        const error = fail(texts);
        if (error !== undefined) throw error;
        return statements.map(() => ANSWER);
      },
      release: (destroy) => released.push(destroy),
    });
    const alone = async (statement: Sql): Promise<Outcome> => {
      sent.push([statement.text]);
      return ANSWER;
    };
    const history = new StatementHistory();
    const gathered = new WriteBatcher({ lease, alone, history, connections: 1, limits: LIMITS });
    const start = (...texts: readonly string[]) => Promise.all(texts.map((each) => gathered.rows(raw(each))));
    const write = (...texts: readonly string[]) => answered(start(...texts));
    return { sent, released, gathered, start, write };
  }
  const at = (completed: number, isUndone = true): Error =>
    new TogetherError(new Error('Connection terminated'), completed, isUndone);

  it('a batcher sends a single write plainly, and several behind their limits', async () => {
    const { sent, write } = recorded();
    await write('a');
    await write('a', 'b');
    expect(sent).toEqual([['a'], ['limits', 'a', 'b']]);
  });

  it('a batcher orders writes by the rows that they lock', async () => {
    const { sent, gathered } = recorded();
    await answered(Promise.all(['c', 'a', 'b'].map((row) => gathered.rows(raw(row), { row }))));
    expect(sent).toEqual([['limits', 'a', 'b', 'c']]);
  });

  it('a batcher gathers writes while others are under way', async () => {
    const { sent, start } = recorded();
    const first = start('a', 'b');
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toHaveLength(1);
    await answered(Promise.all([first, start('c'), start('d'), start('e')]));
    expect(sent).toEqual([
      ['limits', 'a', 'b'],
      ['limits', 'c', 'd', 'e'],
    ]);
  });

  it('a batch has 32 statements at most', async () => {
    const { sent, write } = recorded();
    await write(...upTo(70).map(String));
    expect(sent.map(({ length }) => length)).toEqual([33, 33, 7]);
  });

  it('a failed batch is sent one by one, and its culprit stays alone for a time', async () => {
    const { sent, released, write } = recorded((texts) => (texts.includes('bad') ? at(2) : undefined));
    await write('a', 'bad', 'c');
    expect(sent.splice(0)).toEqual([['limits', 'a', 'bad', 'c'], ['a'], ['bad'], ['c']]);
    expect(released).toEqual([false]);
    await write('a', 'bad', 'c');
    expect(sent.splice(0)).toEqual([['bad'], ['limits', 'a', 'c']]);
    await vi.advanceTimersByTimeAsync(500);
    await write('a', 'bad', 'c');
    expect(sent.splice(0)[0]).toEqual(['limits', 'a', 'bad', 'c']);
  });

  it('a failed commit blames no statement', async () => {
    const { sent, write } = recorded((texts) => (sent.length === 1 ? at(texts.length) : undefined));
    await write('a', 'b');
    await write('a', 'b');
    expect(sent).toEqual([['limits', 'a', 'b'], ['a'], ['b'], ['limits', 'a', 'b']]);
  });

  it('a batch of unknown outcome is not sent again, and its connection is given up', async () => {
    const { sent, released, write } = recorded(() => at(1, false));
    await expect(write('a', 'b')).rejects.toMatchObject({ kind: 'unavailable' });
    expect(sent).toHaveLength(1);
    expect(released).toEqual([true]);
  });

  it('a statement that left an unknown outcome is sent alone for a time', async () => {
    const { sent, write } = recorded((texts) => (texts.includes('bad') ? at(2, false) : undefined));
    await expect(write('a', 'bad', 'c')).rejects.toMatchObject({ kind: 'unavailable' });
    await write('a', 'bad', 'c');
    expect(sent.slice(1)).toEqual([['bad'], ['limits', 'a', 'c']]);
  });

  it('a pending batch does not hold up the next forever', async () => {
    const { promise: never, resolve } = Promise.withResolvers<Outcome>();
    const sent: string[] = [];
    const gathered = new WriteBatcher({
      lease: () => Promise.reject(new Error('not used')),
      alone: ({ text: each }) => {
        sent.push(each);
        return each === 'held' ? never : Promise.resolve(ANSWER);
      },
      ...ONE,
    });
    const held = gathered.rows(raw('held'));
    await vi.advanceTimersByTimeAsync(1);
    await answered(gathered.rows(raw('later')));
    expect(sent).toEqual(['held', 'later']);
    resolve(ANSWER);
    await held;
  });

  const sizesOf = (sent: readonly (readonly string[])[]): readonly number[] =>
    sent.filter(([first]) => first === 'limits').map(({ length }) => length - 1);

  it('slow statements make batches smaller', async () => {
    const { sent, write } = recorded(() => undefined, { took: (count) => 4 * count });
    for (let i = 0; i < 4; i++) await write(...upTo(32).map(String));
    expect(sizesOf(sent).slice(0, 2)).toEqual([32, 16]);
    expect(Math.max(...sizesOf(sent).slice(-4))).toBeLessThan(14);
  });

  it('slow commits keep batches large', async () => {
    const { sent, write } = recorded(() => undefined, { took: () => 40 });
    for (let i = 0; i < 16; i++) await write(...upTo(32).map(String));
    // Writes sent one by one have no limits.
    const lastRounds = sent.slice(-8);
    expect(Math.max(...sizesOf(lastRounds))).toBeGreaterThan(4);
  });

  it('a failure makes batches smaller, and successes larger again', async () => {
    const quick = recorded((texts) => (texts.length > 17 ? at(1) : undefined));
    await quick.write(...upTo(32).map(String));
    for (let i = 0; i < 3; i++) await quick.write(...upTo(32).map((n) => `again ${n}`));
    expect(sizesOf(quick.sent).slice(0, 5)).toEqual([32, 16, 16, 17, 8]);
  });

  it('constant failures keep batches at one or two statements', async () => {
    const { sent, write } = recorded((texts) => at(texts.length));
    for (let i = 0; i < 6; i++) await write(...upTo(32).map(String));
    sent.length = 0;
    await write(...upTo(32).map(String));
    expect(Math.max(...sent.map(({ length }) => length))).toBeLessThan(4);
  });

  it('a batcher rejects the writes of a caller who has too many waiting', async () => {
    const { gathered } = recorded();
    const works = upTo(1_200).map((n) => gathered.rows(raw(`${n}`)).catch((error: unknown) => error));
    const answers = await answered(Promise.all(works));
    expect(answers.filter((each) => each instanceof QueueFull && each.isOwn)).toHaveLength(1_200 - 128 - 1_000);
    await expect(answered(gathered.rows(raw('later')))).resolves.toEqual([]);
  });

  it('a closed batcher answers earlier writes and rejects later ones', async () => {
    const { sent, gathered, start } = recorded();
    let isAnswered = false;
    const before = start('a', 'b').then(() => {
      isAnswered = true;
    });
    await answered(Promise.all([gathered.close(), gathered.close()]));
    expect(sent).toEqual([['limits', 'a', 'b']]);
    await before;
    expect(isAnswered).toBe(true);
    expect(await outcomeOf(gathered.rows(raw('c')))).toBe('unavailable');
    expect(sent).toHaveLength(1);
  });

  it('a batcher passes on the lack of a connection', async () => {
    const gathered = new WriteBatcher({
      lease: () => Promise.reject(new StoreError('unavailable')),
      alone: () => Promise.reject(new Error('not used')),
      ...ONE,
    });
    const works = ['a', 'b'].map((each) => outcomeOf(gathered.rows(raw(each))));
    expect(await answered(Promise.all(works))).toEqual(['unavailable', 'unavailable']);
  });
});
