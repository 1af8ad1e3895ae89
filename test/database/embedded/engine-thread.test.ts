// @module-tag long
/** The embedded engine has a thread of its own: what it gives the event loop, and what becomes of the database when it ends. */
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { EngineSocket } from '../../../src/database/embedded/engine-socket.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { CellClient } from '../../../src/database/pg-internals.ts';
import { raw } from '../../../src/sql.ts';
import { fillDataFolder, openEmbeddedDatabase } from '../../support/embedded/embedded.ts';
import { keepNoEngines } from '../../support/embedded/kept-engines.ts';
import { useStoppedNow } from '../../support/own-clock.ts';

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
const SOURCE = pathToFileURL(join(import.meta.dirname, '../../../src/database/open-database.ts')).href;

const SLOW = { lane: 'slow' } as const;

describe('the event loop', () => {
  // The queue rejects statements that it expects to wait too long, as on a busy machine.
  useStoppedNow();
  let db: Database;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
  });
  afterAll(() => db.close());

  it('the event loop turns while a statement runs', async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 5);
    await db.rows(raw('SELECT pg_sleep(0.3)'));
    clearInterval(timer);
    // On a thread that waits for the statement: none.
    expect(turns).toBeGreaterThan(10);
  });

  it('a fast statement waits for one slow statement, not for all of them', async () => {
    const answered: string[] = [];
    const note = (name: string) => () => void answered.push(name);
    const slow = ['first', 'second', 'third'].map((name) =>
      db.rows(raw('SELECT pg_sleep(0.1)'), SLOW).then(note(name)),
    );
    await Promise.all([...slow, db.rows(raw('SELECT 1')).then(note('fast'))]);
    expect(answered.indexOf('fast')).toBeLessThan(2);
    expect(answered.filter((each) => each !== 'fast')).toEqual(['first', 'second', 'third']);
  });

  it('concurrent statements get their answers in the right order', async () => {
    const asked = Array.from({ length: 200 }, (_, i) => {
      const statement = raw(`SELECT ${i}, repeat('é', ${i * 50})`);
      return db.rows(statement, i % 3 === 0 ? SLOW : {});
    });
    const answers = await Promise.all(asked);
    expect(answers).toEqual(answers.map((_, i) => [[String(i), 'é'.repeat(i * 50)]]));
  });
});

describe('a statement that is nested too deeply', () => {
  it.each([
    ['a value', `SELECT (repeat('[', 100000) || repeat(']', 100000))::jsonb`, '54001'],
    ['an expression', `SELECT ${'NOT ('.repeat(50_000)}true${')'.repeat(50_000)}`, '42601'],
    ['calls', `SELECT ${'coalesce(nullif('.repeat(20_000)}random()${',2))'.repeat(20_000)}`, '42601'],
  ])('the database rejects the statement and goes on: %s', async (_, text, code) => {
    const db = await openEmbeddedDatabase();
    try {
      expect(await failure(db.rows(raw(text)))).toMatchObject({ code });
      expect(await db.rows(raw('SELECT 1'))).toEqual([['1']]);
    } finally {
      await db.close();
    }
  });
});

describe('a thread that ends', () => {
  const SETTINGS = raw(`SELECT current_setting('TimeZone'), current_setting('DateStyle')`);
  const ROWS = raw('SELECT id FROM kept');
  const unavailable = { name: 'StoreError', kind: 'unavailable' };
  let folder: string;
  let db: Database;
  /** The one of the last start. */
  let thread: Worker;
  let settings: unknown;
  const noteThread = (made: Worker): void => {
    thread = made;
  };
  beforeAll(async () => {
    keepNoEngines();
    folder = mkdtempSync(join(tmpdir(), 'bylaw-engine-'));
    await fillDataFolder(folder);
    process.on('worker', noteThread);
    db = await openDatabase({ dataDir: folder });
    settings = await db.rows(SETTINGS);
    await db.run(raw('CREATE TABLE kept (id int)'));
  });
  afterAll(() => {
    process.off('worker', noteThread);
    rmSync(folder, { recursive: true, force: true });
  });

  it('an ended thread fails the statement under way, starts again for the next, and loses no commit', async () => {
    await db.run(raw('INSERT INTO kept VALUES (1)'));
    const ended = thread;
    const isSent = new Promise<void>((resolve) => {
      vi.spyOn(ended, 'postMessage').mockImplementationOnce((...message) => {
        ended.postMessage(...message);
        resolve();
      });
    });
    const underWay = failure(db.run(raw('SELECT pg_sleep(60)')));
    const waiting = db.transaction((tx) => tx.run(raw('INSERT INTO kept VALUES (2)')));
    await isSent;
    await ended.terminate();
    expect(await underWay).toMatchObject(unavailable);
    await waiting;
    expect(await db.rows(ROWS)).toEqual([['1'], ['2']]);
    await db.transaction((tx) => tx.run(raw('INSERT INTO kept VALUES (3)')));
  });

  it('a thread that has ended twice starts again, with the settings of the connection', async () => {
    await thread.terminate();
    expect(await db.rows(SETTINGS)).toEqual(settings);
  });

  it('listeners learn of the end of a thread, and get later messages', async () => {
    const heard: string[] = [];
    const stop = await db.listen({
      channel: 'news',
      onMessage: (payload) => heard.push(payload),
      onState: (up) => heard.push(up ? 'up' : 'down'),
    });
    await db.notify('news', 'first');
    await thread.terminate();
    await db.notify('news', 'second');
    await db.ping();
    expect(heard).toEqual(['up', 'first', 'down', 'up', 'second']);
    await stop();
  });

  it('a thread that cannot start makes the database unavailable, and is tried again', async () => {
    await thread.terminate();
    const [database, aside] = [join(folder, 'database'), join(folder, 'aside')];
    renameSync(database, aside);
    writeFileSync(database, 'no folder');
    expect(await failure(db.rows(ROWS))).toMatchObject(unavailable);
    expect(await failure(db.transaction((tx) => tx.rows(ROWS)))).toMatchObject(unavailable);
    unlinkSync(database);
    renameSync(aside, database);
    const rows = [['1'], ['2'], ['3']];
    await expect.poll(() => db.rows(ROWS).catch(failure), { timeout: 10_000 }).toEqual(rows);
  });

  it('a closed database leaves no thread', async () => {
    let hasEnded = false;
    thread.once('exit', () => {
      hasEnded = true;
    });
    await Promise.all([db.rows(raw('SELECT 1')), db.rows(raw('SELECT 2'), SLOW), db.rows(raw('SELECT 3'), SLOW)]);
    await db.close();
    expect(hasEnded).toBe(true);
  });

  it('a failed start reports the reason of the system, and leaves the folder and its commits to the next', async () => {
    const [database, aside] = [join(folder, 'database'), join(folder, 'aside')];
    renameSync(database, aside);
    symlinkSync(join(folder, 'missing'), database);
    // Not as a damaged folder.
    expect(await failure(openDatabase({ dataDir: folder }))).toMatchObject({ code: 'EEXIST', syscall: 'mkdir' });
    unlinkSync(database);
    renameSync(aside, database);
    const next = await openDatabase({ dataDir: folder });
    expect(await next.rows(ROWS)).toEqual([['1'], ['2'], ['3']]);
    await next.close();
  });

  it('an ended thread takes a database in memory with it', async () => {
    const inMemory = await openEmbeddedDatabase();
    await thread.terminate();
    for (let i = 0; i < 2; i++) expect(await failure(inMemory.ping())).toMatchObject(unavailable);
    await inMemory.close();
  });
});

describe('a process that creates its database, and leaves it open', () => {
  let folder: string;
  let printed: { readonly rows: unknown; readonly mebibytes: number };
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bylaw-engine-'));
    mkdirSync(join(folder, 'database.new-1', 'base'), { recursive: true });
    const script = `
      const { getHeapStatistics } = await import('node:v8');
      const { openDatabase } = await import('${SOURCE}');
      const db = await openDatabase({ dataDir: ${JSON.stringify(folder)} });
      for (let i = 0; i < 100; i++) await db.rows({ text: 'SELECT ' + i + ', 1'.repeat(100), params: [] });
      await new Promise((resolve) => setTimeout(resolve, 500));
      const rows = await db.rows({ text: 'SELECT 1', params: [] });
      console.log(JSON.stringify({ rows, mebibytes: getHeapStatistics().peak_malloced_memory / 2 ** 20 }));`;
    const arguments_ = ['--input-type=module', '-e', script];
    const { stdout } = await promisify(execFile)(process.execPath, arguments_, { timeout: 60_000 });
    printed = JSON.parse(stdout);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('the process ends when it has nothing else to do than to wait for the thread', () => {
    expect(printed.rows).toEqual([['1']]);
  });

  it('the parser of statements stays unoptimised, which would take 600 MiB', () => {
    expect(printed.mebibytes).toBeLessThan(300);
  });

  it('a folder whose creation was interrupted is removed', () => {
    expect(readdirSync(folder).filter((name) => name.startsWith('database'))).toEqual(['database']);
  });
});

/** Threads that do what the engine's must not. */
describe('an engine', () => {
  const WELCOME = '0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49';
  /** Connects to a thread that runs the text for each message after the first. */
  async function connectTo(text: string): Promise<CellClient> {
    const script = `
      const { parentPort } = require('node:worker_threads');
      parentPort.once('message', () => {
        parentPort.on('message', () => { ${text} });
        parentPort.postMessage(new Uint8Array([${WELCOME}]));
      });`;
    const socket = new EngineSocket(new Worker(script, { eval: true }));
    const client = new CellClient({ stream: () => socket, ssl: false, user: 'postgres' });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  it.each([
    ['throws', `throw new Error('no memory is left')`, 'no memory is left'],
    ['exits', 'process.exit(3)', 'the thread of the engine has ended'],
    ['reports an error', `parentPort.postMessage(new Error('Aborted()'))`, 'Aborted()'],
    ['gives no answer', 'parentPort.postMessage(new Uint8Array(0))', 'the engine has not answered'],
  ])('an engine that %s ends the connection', async (_, text, message) => {
    const client = await connectTo(text);
    const terminated = { message: 'the embedded database has terminated', cause: { message } };
    expect(await failure(client.query('SELECT 1'))).toMatchObject(terminated);
    expect(await failure(client.query('SELECT 1'))).toMatchObject({
      message: expect.stringContaining('not queryable'),
    });
    await client.end();
  });

  it('an engine that exits as if it was asked to ends the connection', async () => {
    const client = await connectTo('process.exit(0)');
    expect(await failure(client.query('SELECT 1'))).toMatchObject({ message: 'Connection terminated unexpectedly' });
    await client.end();
  });
});
