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
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
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
    await db.rows(raw('SELECT pg_sleep(0.5)'));
    clearInterval(timer);
    // On a thread that waits for the statement: none.
    expect(turns).toBeGreaterThan(10);
  });

  it('a fast statement waits for one slow statement, not for all of them', async () => {
    const answered: string[] = [];
    const note = (name: string) => () => void answered.push(name);
    const slow = ['first', 'second', 'third'].map((name) =>
      db.rows(raw('SELECT pg_sleep(0.2)'), SLOW).then(note(name)),
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
  let folder: string;
  beforeAll(keepNoEngines);
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bylaw-engine-'));
    await fillDataFolder(folder);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const nextThread = (): Promise<Worker> => new Promise((resolve) => process.once('worker', resolve));

  async function openWithThread(): Promise<{ readonly db: Database; readonly thread: Worker }> {
    const made = nextThread();
    const db = await openDatabase({ dataDir: folder });
    return { db, thread: await made };
  }

  it('an ended thread fails the statement under way, starts again for the next, and loses no commit', async () => {
    const { db, thread } = await openWithThread();
    await db.run(raw('CREATE TABLE kept (id int)'));
    await db.run(raw('INSERT INTO kept VALUES (1)'));
    const isSent = new Promise<void>((resolve) => {
      vi.spyOn(thread, 'postMessage').mockImplementationOnce((...message) => {
        thread.postMessage(...message);
        resolve();
      });
    });
    const underWay = failure(db.run(raw('SELECT pg_sleep(60)')));
    const waiting = db.transaction((tx) => tx.run(raw('INSERT INTO kept VALUES (2)')));
    await isSent;
    await thread.terminate();
    const unavailable = { name: 'StoreError', kind: 'unavailable' };
    expect(await underWay).toMatchObject(unavailable);
    await waiting;
    expect(await db.rows(raw('SELECT id FROM kept'))).toEqual([['1'], ['2']]);
    await db.transaction((tx) => tx.run(raw('INSERT INTO kept VALUES (3)')));
    await db.close();

    const again = await openDatabase({ dataDir: folder });
    expect(await again.rows(raw('SELECT id FROM kept'))).toEqual([['1'], ['2'], ['3']]);
    await again.close();
  });

  it('a thread starts again as often as it ends, with the settings of the connection', async () => {
    const opened = await openWithThread();
    const { db } = opened;
    let { thread } = opened;
    const settings = raw(`SELECT current_setting('TimeZone'), current_setting('DateStyle')`);
    const before = await db.rows(settings);
    for (let i = 0; i < 2; i++) {
      const next = nextThread();
      await thread.terminate();
      expect(await db.rows(settings)).toEqual(before);
      thread = await next;
    }
    await db.close();
  });

  it('listeners learn of the end of a thread, and get later messages', async () => {
    const { db, thread } = await openWithThread();
    const heard: string[] = [];
    await db.listen({
      channel: 'news',
      onMessage: (payload) => heard.push(payload),
      onState: (up) => heard.push(up ? 'up' : 'down'),
    });
    await db.notify('news', 'first');
    await thread.terminate();
    await db.notify('news', 'second');
    await db.ping();
    expect(heard).toEqual(['up', 'first', 'down', 'up', 'second']);
    await db.close();
  });

  it('a thread that cannot start makes the database unavailable, and is tried again', async () => {
    const { db, thread } = await openWithThread();
    await db.run(raw('CREATE TABLE kept (id int)'));
    await thread.terminate();
    const [database, aside] = [join(folder, 'database'), join(folder, 'aside')];
    renameSync(database, aside);
    writeFileSync(database, 'no folder');
    const unavailable = { name: 'StoreError', kind: 'unavailable' };
    expect(await failure(db.rows(raw('SELECT id FROM kept')))).toMatchObject(unavailable);
    expect(await failure(db.transaction((tx) => tx.rows(raw('SELECT id FROM kept'))))).toMatchObject(unavailable);
    unlinkSync(database);
    renameSync(aside, database);
    await expect.poll(() => db.rows(raw('SELECT id FROM kept')).catch(failure), { timeout: 10_000 }).toEqual([]);
    await db.close();
  });

  it('an ended thread takes a database in memory with it', async () => {
    const made = nextThread();
    const db = await openEmbeddedDatabase();
    await (await made).terminate();
    for (let i = 0; i < 2; i++)
      expect(await failure(db.ping())).toMatchObject({ name: 'StoreError', kind: 'unavailable' });
    await db.close();
  });

  it('a closed database leaves no thread', async () => {
    const { db, thread } = await openWithThread();
    let hasEnded = false;
    thread.once('exit', () => {
      hasEnded = true;
    });
    await Promise.all([db.rows(raw('SELECT 1')), db.rows(raw('SELECT 2'), SLOW), db.rows(raw('SELECT 3'), SLOW)]);
    await db.close();
    expect(hasEnded).toBe(true);
  });

  it('a failed start reports the reason of the system, and leaves the folder to the next', async () => {
    const database = join(folder, 'database');
    rmSync(database, { recursive: true });
    symlinkSync(join(folder, 'missing'), database);
    // Not as a damaged folder.
    expect(await failure(openDatabase({ dataDir: folder }))).toMatchObject({ code: 'EEXIST', syscall: 'mkdir' });
    unlinkSync(database);
    await fillDataFolder(folder);
    const db = await openDatabase({ dataDir: folder });
    expect(await db.rows(raw('SELECT 1'))).toEqual([['1']]);
    await db.close();
  });

  it('a process with nothing else to do does not wait for the thread', async () => {
    const script = `
      const { openDatabase } = await import('${SOURCE}');
      const db = await openDatabase({ dataDir: ${JSON.stringify(folder)} });
      const rows = await db.rows({ text: 'SELECT 1', params: [] });
      console.log(JSON.stringify(rows));`;
    const arguments_ = ['--input-type=module', '-e', script];
    const { stdout } = await promisify(execFile)(process.execPath, arguments_, { timeout: 30_000 });
    expect(stdout).toBe('[["1"]]\n');
  });

  it('the parser of statements stays unoptimised, which would take 600 MiB', async () => {
    const script = `
      const { getHeapStatistics } = await import('node:v8');
      const { openDatabase } = await import('${SOURCE}');
      const db = await openDatabase({ dataDir: ${JSON.stringify(folder)} });
      for (let i = 0; i < 100; i++) await db.rows({ text: 'SELECT ' + i + ', 1'.repeat(100), params: [] });
      await new Promise((resolve) => setTimeout(resolve, 500));
      await db.close();
      console.log(getHeapStatistics().peak_malloced_memory / 2 ** 20);`;
    const arguments_ = ['--input-type=module', '-e', script];
    const { stdout } = await promisify(execFile)(process.execPath, arguments_, { timeout: 60_000 });
    expect(Number(stdout)).toBeLessThan(300);
  });
});

describe('a missing folder', () => {
  it('a folder whose creation was interrupted is removed', async () => {
    const parent = mkdtempSync(join(tmpdir(), 'bylaw-engine-'));
    mkdirSync(join(parent, 'database.new-1', 'base'), { recursive: true });
    const db = await openDatabase({ dataDir: parent });
    await db.close();
    expect(readdirSync(parent).filter((name) => name.startsWith('database'))).toEqual(['database']);
    rmSync(parent, { recursive: true });
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
