// @module-tag long
/** Both databases keep promises: transactions, errors by kind, notifications; and each has promises of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, StoreError } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { MISSING_SETTINGS } from '../../src/database/server-url.ts';
import { FolderInUse } from '../../src/folder-lock.ts';
import { asCaller } from '../../src/queued-caller.ts';
import { type Param, param, plannedParam, raw, sql, typedLiteral } from '../../src/sql.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { hasPostgres, KINDS, openKind, postgresUrl } from '../support/store-world.ts';

const MEBIBYTE = 2 ** 20;

async function failure(
  work: Promise<unknown>,
): Promise<{ kind?: string; constraint?: string | undefined; message: string }> {
  const error = await work.then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  if (error === undefined) throw new Error('nothing failed');
  return error instanceof StoreError
    ? { kind: error.kind, constraint: error.violated?.constraint, message: error.message }
    : error;
}

describe.each(KINDS)('%s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await db.run(
      raw(
        'CREATE TABLE parents (id int PRIMARY KEY, n int NOT NULL, u int, CONSTRAINT parents_u_key UNIQUE (u) DEFERRABLE INITIALLY DEFERRED)',
      ),
    );
    await db.run(
      raw(
        'CREATE TABLE children (id int PRIMARY KEY, parent int CONSTRAINT children_parent_fkey REFERENCES parents ON DELETE RESTRICT)',
      ),
    );
    await db.run(raw('INSERT INTO parents VALUES (1, 0, 1), (2, 0, 2)'));
    await db.run(raw('INSERT INTO children VALUES (1, 1)'));
  });
  afterAll(() => db?.close());

  const count = async (id: number) =>
    Number((await db.rows(sql`SELECT n FROM parents WHERE id = ${param('int8', id)}`))[0]![0]);

  it('a role is given the settings that a connection lacks, in statements', async () => {
    const [, ...answers] = await db.transaction(async (tx) => [
      await tx.run(
        raw(`SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, DMY'; SET LOCAL bytea_output = 'hex';
             SET LOCAL extra_float_digits = 1; SET LOCAL statement_timeout = '15s';
             SET LOCAL idle_in_transaction_session_timeout = '30s'; SET LOCAL jit = 'off';
             SET LOCAL lock_timeout = '1200ms'`),
      ),
      await tx.rows(MISSING_SETTINGS),
      await tx.run(raw(`SET LOCAL timezone = 'Europe/Vienna'; SET LOCAL lock_timeout = 0`)),
      (await tx.rows(MISSING_SETTINGS)).flat().sort(),
      (await tx.rows(raw('SELECT quote_ident(current_user)')))[0]![0],
    ]);
    const [none, , some, role] = answers;
    expect(none).toEqual([]);
    const wanted = ["TimeZone = 'UTC'", "lock_timeout = '1200'"];
    expect(some).toEqual(wanted.map((each) => `ALTER ROLE ${role} SET ${each};`));
  });

  it.each(['on', 'off'])('constants keep their values with standard_conforming_strings %s', async (setting) => {
    const texts = [
      "'",
      "''",
      '\\',
      "\\'",
      "\\' OR TRUE --",
      '$1',
      '$$',
      '$1::text',
      ':name',
      '?',
      '%',
      '',
      '\n',
      '\u{1f600}',
      'É',
      'E',
      '{a,"b"}',
      'NULL',
    ];
    const numbers = [0, 1, -1, 1.5, -1.5e-9, 1e21, 2 ** 53, -(2 ** 53), Number.MIN_VALUE, Number.MAX_VALUE];
    await db.transaction(async (tx) => {
      await tx.run(raw(`SET LOCAL standard_conforming_strings = ${setting}`));
      for (const text of texts) {
        const asked = sql`SELECT ${typedLiteral('text', text)} = ${param('text', text)}, ${param('text', text)} = ANY(${typedLiteral('text[]', texts)})`;
        expect([text, ...(await tx.rows(asked))[0]!]).toEqual([text, 't', 't']);
      }
      for (const number of numbers) {
        const asked = sql`
            SELECT ${typedLiteral('float8', number)} = ${param('float8', number)}, ${typedLiteral('float8[]', numbers)} = ${param('float8[]', numbers)}`;
        expect([number, ...(await tx.rows(asked))[0]!]).toEqual([number, 't', 't']);
      }
      const others = sql`
          SELECT ${typedLiteral('text[]', [])} = ${param('text[]', [])},
                 ${typedLiteral('bool', true)},
                 ${typedLiteral('int8[]', [-1, 2])} = ${param('int8[]', [-1, 2])}`;
      expect((await tx.rows(others))[0]).toEqual(['t', 't', 't']);
    });
  });

  it('a statement is planned for the values that need it, after any number of uses', async () => {
    await db.run(raw('CREATE TABLE skewed (id int PRIMARY KEY, kind text NOT NULL)'));
    await db.run(
      raw(
        `INSERT INTO skewed SELECT n, CASE n WHEN 20000 THEN 'rare' ELSE 'common' END FROM generate_series(1, 20000) n`,
      ),
    );
    await db.run(raw('CREATE INDEX skewed_kind_idx ON skewed (kind)'));
    await db.run(raw('ANALYZE skewed'));
    /** The rows that the last of many statements with one text reads. */
    const readFor = (value: (kind: string) => Param): Promise<number> =>
      db.transaction(async (tx) => {
        const ask = (kind: string) =>
          tx.rows(sql`SELECT id FROM skewed WHERE kind = ${value(kind)} ORDER BY id LIMIT ${typedLiteral('int8', 10)}`);
        const read = async (): Promise<number> =>
          Number(
            (
              await tx.rows(
                raw(`SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))
                       FROM pg_class WHERE relname LIKE 'skewed%'`),
              )
            )[0]![0],
          );
        for (let i = 0; i < 12; i++) expect(await ask('common')).toHaveLength(10);
        const before = await read();
        expect(await ask('rare')).toEqual([['20000']]);
        return (await read()) - before;
      });
    expect(await readFor((kind) => plannedParam('text', kind))).toBeLessThan(10);
    // The plan for any value walks the table.
    expect(await readFor((kind) => param('text', kind))).toBeGreaterThan(10_000);
    const named = await db.rows(raw(`SELECT 1 FROM pg_prepared_statements WHERE statement LIKE '%skewed WHERE kind%'`));
    expect(named.length).toBeLessThanOrEqual(1);
  });

  it('an answer leaves nothing in memory', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const inUse = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    // A new engine, not one from a snapshot: the engine's own parser keeps nothing after its first error.
    const fresh = kind === 'embedded' ? await openDatabase({}) : await openKind(kind);
    const long = sql`SELECT repeat('x', ${param('int8', 100_000)}::int)`;
    await fresh.rows(long);
    const before = inUse();
    for (let i = 0; i < 300; i++) await fresh.rows(long);
    const growth = inUse() - before;
    await fresh.close();
    expect(growth / MEBIBYTE).toBeLessThan(10);
  });

  it('cells are the text of PostgreSQL, in UTC', async () => {
    const [row] = await db.rows(
      sql`
        SELECT ${param('text[]', ['a', 'b"\\', ''])},
               ${param('timestamptz', '2026-01-01T02:00:00.5+02:00')},
               ${param('jsonb', { a: [1, null] })},
               ${param('float8', 0.1)},
               ${param('bytea', Buffer.from('ab'))},
               ${param('bool', true)},
               ${param('text', null)}`,
    );
    expect(row).toEqual([
      '{a,"b\\"\\\\",""}',
      '2026-01-01 00:00:00.5+00',
      '{"a": [1, null]}',
      '0.1',
      '\\x6162',
      't',
      null,
    ]);
  });

  it('a transaction commits when it resolves, and rolls back when it throws', async () => {
    expect(await db.transaction(async (tx) => tx.run(raw('UPDATE parents SET n = 5 WHERE id = 1')))).toBe(1);
    const thrown = db.transaction(async (tx) => {
      await tx.run(raw('UPDATE parents SET n = 6 WHERE id = 1'));
      throw new Error('mine');
    });
    expect(await failure(thrown)).toMatchObject({ message: 'mine' });
    expect(await count(1)).toBe(5);
  });

  it('errors carry their kind and constraint, deferred ones too', async () => {
    expect(await failure(db.run(raw('INSERT INTO parents VALUES (3, 0, 1)')))).toMatchObject({
      kind: 'unique',
      constraint: 'parents_u_key',
    });
    expect(await failure(db.transaction((tx) => tx.run(raw('INSERT INTO parents VALUES (3, 0, 1)'))))).toMatchObject({
      kind: 'unique',
      constraint: 'parents_u_key',
    });
    expect(await failure(db.run(raw('DELETE FROM parents WHERE id = 1')))).toMatchObject({
      kind: 'foreign_key',
      constraint: 'children_parent_fkey',
    });
    expect(await failure(db.run(raw('INSERT INTO children VALUES (9, 99)')))).toMatchObject({ kind: 'foreign_key' });
    expect(await failure(db.rows(raw('SELECT nonsense')))).not.toHaveProperty('kind');
    expect(await count(1)).toBe(5);
  });

  it('a transaction that goes on after a failure is not committed', async () => {
    const swallowed = db.transaction(async (tx) => {
      await tx.run(raw('UPDATE parents SET n = 7 WHERE id = 1'));
      await tx.run(raw('INSERT INTO children VALUES (9, 99)')).catch(() => undefined);
    });
    expect((await failure(swallowed)).message).toContain('ends with its first failed statement');
    expect(await count(1)).toBe(5);
  });

  it('a transaction cannot wait for a second connection', async () => {
    const asks: readonly (() => Promise<unknown>)[] = [
      () => db.rows(raw('SELECT 1')),
      () => db.run(raw('SELECT 1')),
      () => db.transaction(async () => 1),
    ];
    for (const ask of asks) {
      expect((await failure(db.transaction(ask))).message).toContain('only the transaction itself');
    }
  });

  it('more transactions than connections run at once', async () => {
    await Promise.all(
      Array.from({ length: 60 }, () =>
        db.transaction((tx) => tx.run(raw('UPDATE parents SET n = n + 1 WHERE id = 2'))),
      ),
    );
    expect(await count(2)).toBe(60);
  });

  it('a slow read whose client leaves before its turn is not run', async () => {
    await db.run(raw('CREATE SEQUENCE runs'));
    const read = raw("SELECT nextval('runs'), count(*) FROM generate_series(1, 300000) AS n WHERE n::text LIKE '%1%'");
    let hasLeft = false;
    const caller = { id: 'ann', isKept: false, hasLeft: () => hasLeft };
    const reads = Array.from({ length: 12 }, () => asCaller(caller, () => db.rows(read, { lane: 'slow' })));
    await new Promise((resolve) => setImmediate(resolve));
    hasLeft = true;
    const results = await Promise.allSettled(reads);
    const dropped = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.message] : []));
    const [[runs]] = (await db.rows(raw('SELECT last_value FROM runs'))) as [[string]];
    expect(new Set(dropped)).toEqual(new Set(['the database cannot be reached (the client has left)']));
    expect([Number(runs), Number(runs) <= 4]).toEqual([12 - dropped.length, true]);
  });

  it('listeners get the notifications of their channel only', async () => {
    const heard: string[] = [];
    const states: boolean[] = [];
    const first = Promise.withResolvers<void>();
    const stop = await db.listen({
      channel: 'a channel',
      onMessage: (payload) => {
        heard.push(payload);
        if (payload === 'last') first.resolve();
      },
      onState: (up) => states.push(up),
    });
    await db.notify('another', 'no');
    await db.transaction((tx) => tx.rows(sql`SELECT pg_notify('a channel', ${param('text', 'in a transaction')})`));
    await db.notify('a channel', 'last');
    await first.promise;
    await stop();
    expect(heard).toEqual(['in a transaction', 'last']);
    expect(states).toEqual([true]);
  });
});

describe.runIf(hasPostgres)('a PostgreSQL server', () => {
  // Other suites have connections to the same server, which are not to be lost.
  const NAME = `bylaw_lost_${process.pid}`;
  let url: string;
  let db: Database;
  let other: Database;
  beforeAll(async () => {
    url = `${await postgresUrl()}&application_name=${NAME}`;
    db = await openDatabase({ url, poolSize: 4, pipelines: 2 });
    other = await openDatabase({ url, poolSize: 2, pipelines: 1 });
    await db.run(raw('CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)'));
    await db.run(raw('INSERT INTO counters VALUES (1, 0), (2, 0)'));
  });
  afterAll(async () => {
    await db?.close();
    await other?.close();
  });

  /** From outside: what kills must not be among the killed, and is not to be sent twice. */
  const killAll = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: url.replace(NAME, 'bylaw_killer') });
    await client.connect();
    try {
      const { rowCount } = await client.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
        [NAME],
      );
      expect(rowCount).toBeGreaterThan(0);
    } finally {
      await client.end();
    }
  };

  it('a unique value goes to a single writer, and its rivals get an error', async () => {
    await db.run(raw('CREATE TABLE rivals (id int8, u int UNIQUE)'));
    const rivals = Array.from({ length: 6 }, (_, i) =>
      db.write(sql`INSERT INTO rivals (id, u) VALUES (${param('int8', i)}, 7) RETURNING id`).then(
        () => 'written',
        (error: StoreError) => (error instanceof StoreError ? error.kind : String(error)),
      ),
    );
    const outcomes = await Promise.all(rivals);
    expect(outcomes.toSorted()).toEqual([...Array.from({ length: 5 }, () => 'unique'), 'written']);
    expect(await db.rows(raw('SELECT count(*) FROM rivals'))).toEqual([['1']]);
  });

  it('a deadlock is retried without a loss', async () => {
    const both = (first: number, second: number) =>
      db.transaction(async (tx) => {
        await tx.run(sql`UPDATE counters SET n = n + 1 WHERE id = ${param('int8', first)}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
        await tx.run(sql`UPDATE counters SET n = n + 1 WHERE id = ${param('int8', second)}`);
      });
    await Promise.all([both(1, 2), both(2, 1)]);
    expect(await db.rows(raw('SELECT n FROM counters ORDER BY id'))).toEqual([['2'], ['2']]);
  });

  it('a deadlock over unique values is retried, and then reports the duplicate', async () => {
    await db.run(raw('CREATE TABLE places (u int UNIQUE)'));
    const both = (first: number, second: number) =>
      db.transaction(async (tx) => {
        await tx.run(sql`INSERT INTO places VALUES (${param('int8', first)})`);
        await new Promise((resolve) => setTimeout(resolve, 20));
        await tx.run(sql`INSERT INTO places VALUES (${param('int8', second)})`);
      });
    const ended = await Promise.allSettled([both(1, 2), both(2, 1)]);
    const outcomes = ended.map((each) => (each.status === 'rejected' ? each.reason.kind : each.status));
    expect(outcomes.toSorted()).toEqual(['fulfilled', 'unique']);
    expect(await db.rows(raw('SELECT u FROM places ORDER BY u'))).toEqual([['1'], ['2']]);
  });

  it('a loss of all connections leaves reads answered and writes unavailable', async () => {
    const reads = Array.from({ length: 20 }, () => db.rows(raw('SELECT pg_sleep(0.05)::text, 1')));
    const held = Promise.withResolvers<void>();
    const killed = Promise.withResolvers<void>();
    const write = db.transaction(async (tx) => {
      await tx.run(raw('UPDATE counters SET n = 100 WHERE id = 1'));
      held.resolve();
      await killed.promise;
      await tx.run(raw('UPDATE counters SET n = 100 WHERE id = 2'));
    });
    const outcome = failure(write);
    await held.promise;
    await killAll();
    killed.resolve();
    expect(await outcome).toMatchObject({ kind: 'unavailable' });
    expect(await Promise.all(reads)).toEqual(Array.from({ length: 20 }, () => [['', '1']]));
    expect(await db.rows(raw('SELECT n FROM counters ORDER BY id'))).toEqual([['2'], ['2']]);
    await db.transaction((tx) => tx.run(raw('UPDATE counters SET n = 3')));
  });

  it('a listener returns to its channels after a loss, and reports both', async () => {
    const states: boolean[] = [];
    const heard = Promise.withResolvers<string>();
    const back = Promise.withResolvers<void>();
    await db.listen({
      channel: 'news',
      onMessage: heard.resolve,
      onState: (up) => {
        states.push(up);
        if (states.length === 3) back.resolve();
      },
    });
    await killAll();
    await back.promise;
    expect(states).toEqual([true, false, true]);
    await other.notify('news', 'again');
    expect(await heard.promise).toBe('again');
  });

  it('statements that a migration made stale are prepared again', async () => {
    await db.run(raw('CREATE TABLE wide (id int PRIMARY KEY, v int)'));
    await db.run(raw('INSERT INTO wide VALUES (1, 1)'));
    for (let i = 0; i < 8; i++) await db.rows(raw('SELECT v FROM wide'));
    for (let i = 0; i < 8; i++) await db.transaction((tx) => tx.rows(raw('SELECT v FROM wide WHERE id = 1')));
    await other.run(raw('ALTER TABLE wide ALTER COLUMN v TYPE float8'));
    await other.run(raw('UPDATE wide SET v = 1.5'));
    expect(await Promise.all(Array.from({ length: 8 }, () => db.rows(raw('SELECT v FROM wide'))))).toEqual(
      Array.from({ length: 8 }, () => [['1.5']]),
    );
    expect(await db.transaction((tx) => tx.rows(raw('SELECT v FROM wide WHERE id = 1')))).toEqual([['1.5']]);
  });

  it('statements that are stale on every connection are prepared again', async () => {
    const read = raw('SELECT w FROM wider');
    await db.run(raw('CREATE TABLE wider (w int)'));
    await db.run(raw('INSERT INTO wider VALUES (1)'));
    const inAll = async (): Promise<void> => {
      const gate = Promise.withResolvers<void>();
      let open = 0;
      const holding = Array.from({ length: 4 }, () =>
        db.transaction(async (tx) => {
          await tx.rows(read);
          if (++open === 4) gate.resolve();
          await gate.promise;
        }),
      );
      await Promise.all([...holding, ...Array.from({ length: 20 }, () => db.rows(read))]);
    };
    for (let i = 0; i < 2; i++) await inAll();
    await other.run(raw('ALTER TABLE wider ALTER COLUMN w TYPE float8'));
    for (let i = 0; i < 6; i++) {
      expect(await db.rows(read)).toEqual([['1']]);
      expect(await db.rows(read, { lane: 'slow' })).toEqual([['1']]);
      expect(await db.transaction((tx) => tx.rows(read))).toEqual([['1']]);
    }
  });

  it('a killed process leaves nothing half done', async () => {
    const script = join(import.meta.dirname, 'half-done.ts');
    const child = spawn(process.execPath, [script, url], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    // The lock of the dead is gone with its connection.
    await db.transaction((tx) => tx.run(raw('UPDATE counters SET n = n + 1 WHERE id = 1')));
    expect(await db.rows(raw('SELECT n FROM counters ORDER BY id'))).toEqual([['4'], ['3']]);
  });

  it('a server that cannot be reached is unavailable', async () => {
    expect(await failure(openDatabase({ url: 'postgresql://nobody@127.0.0.1:1/none' }))).toMatchObject({
      kind: 'unavailable',
    });
  });
});

describe('the data folder of the embedded database', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bylaw-store-'));
    await fillDataFolder(folder);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  it('a folder keeps rows over a restart, and a second opener out', async () => {
    const first = await openDatabase({ dataDir: folder });
    await first.run(raw('CREATE TABLE kept (id int)'));
    await first.run(raw('INSERT INTO kept VALUES (1)'));
    const refused = await openDatabase({ dataDir: folder }).catch((error: Error) => error);
    expect(refused).toBeInstanceOf(FolderInUse);
    expect((refused as Error).message).toContain(`process ${process.pid}`);
    await first.close();
    const second = await openDatabase({ dataDir: folder });
    expect(await second.rows(raw('SELECT id FROM kept'))).toEqual([['1']]);
    await second.close();
  });
});
