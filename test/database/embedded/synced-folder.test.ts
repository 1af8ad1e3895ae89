// @module-tag long
/**
 * A power failure keeps synced data: the disk of these tests keeps of each file what it held when it was
 * last synced, and loses the rest.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { type Disk, SyncedFolder } from '../../../src/database/embedded/synced-folder.ts';
import { openEngine } from '../../support/embedded/embedded.ts';

const LONGER_THAN_THE_DELAY = 1_300;
const SYNCED = PGlite.defaultStartParams.filter((param) => param !== '-F');

describe('the folder of the embedded database after a power failure', () => {
  let home: string;
  let engine: PGlite;
  const synced: string[] = [];
  const folder = () => join(home, 'live');
  const survivor = () => join(home, 'disk');

  const disk: Disk = {
    sync(path) {
      synced.push(relative(folder(), path));
      // Before a test begins, the disk gets a copy of the whole folder.
      if (!existsSync(survivor()) || statSync(path).isDirectory()) return;
      const copy = join(survivor(), relative(folder(), path));
      mkdirSync(dirname(copy), { recursive: true });
      copyFileSync(path, copy);
    },
    async syncLater(path) {
      this.sync(path);
    },
  };

  /** Advances the clock of the folder, and lets what it started come to its end. */
  const pass = async (milliseconds: number): Promise<void> => {
    await vi.advanceTimersByTimeAsync(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
  };

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    home = mkdtempSync(join(tmpdir(), 'bylaw-power-'));
    cpSync(inject('emptyDatabase').folder, folder(), { recursive: true });
    engine = await openEngine({ fs: new SyncedFolder(folder(), disk), startParams: SYNCED });
    await engine.exec('CREATE TABLE notes (id int PRIMARY KEY, text text)');
    await engine.exec('CHECKPOINT');
    cpSync(folder(), survivor(), { recursive: true });
    await pass(LONGER_THAN_THE_DELAY);
    synced.length = 0;
  });
  afterEach(async () => {
    vi.useRealTimers();
    if (!engine.closed) await engine.close();
    rmSync(home, { recursive: true, force: true });
  });

  async function idsAfterFailure(): Promise<readonly unknown[]> {
    const again = await openEngine({ dataDir: survivor() });
    try {
      const { rows } = await again.query<{ id: number }>('SELECT id FROM notes ORDER BY id');
      return rows.map(({ id }) => id);
    } finally {
      await again.close();
    }
  }
  const insert = (from: number, to: number) =>
    engine.query(`INSERT INTO notes SELECT n, repeat('x', 400) FROM generate_series($1::int, $2::int) AS n`, [
      from,
      to,
    ]);
  const numbers = (to: number) => Array.from({ length: to }, (_, i) => i + 1);

  test('writes older than a second survive, and only writes of the last second may be lost', async () => {
    await insert(1, 3);
    await insert(4, 4);
    expect(synced).toEqual([]);
    await pass(LONGER_THAN_THE_DELAY);
    expect(synced).toContain('pg_wal');
    await insert(5, 6);
    expect(await idsAfterFailure()).toEqual(numbers(4));
  });

  test('a checkpoint syncs the log before the tables, and the database is whole', async () => {
    await insert(1, 2_000);
    await engine.exec('CHECKPOINT');
    const first = (start: string) => synced.findIndex((path) => path.startsWith(start));
    expect(first('pg_wal/')).toBeGreaterThanOrEqual(0);
    expect(first('base/')).toBeGreaterThan(first('pg_wal/'));
    expect(synced).toContain('global/pg_control');
    expect(await idsAfterFailure()).toEqual(numbers(2_000));
  });

  test('a checkpoint does not count on a sync that the disk is still at work on', async () => {
    const held = Promise.withResolvers<void>();
    const works = disk.syncLater;
    disk.syncLater = () => held.promise;
    try {
      await insert(1, 200);
      await pass(LONGER_THAN_THE_DELAY);
      expect(synced).toEqual([]);
      await engine.exec('CHECKPOINT');
      expect(synced[0]).toMatch(/^pg_wal\//);
    } finally {
      disk.syncLater = works;
      held.resolve();
    }
  });

  test('a close leaves no file unsynced', async () => {
    await insert(1, 5);
    await engine.close();
    expect(await idsAfterFailure()).toEqual(numbers(5));
  });

  test('a file of the log that a checkpoint has removed keeps no engine from closing', async () => {
    await insert(1, 5);
    const works = disk.sync;
    disk.sync = function (path) {
      if (/^pg_wal\/./.test(relative(folder(), path)))
        throw Object.assign(new Error('no such file or directory'), { code: 'ENOENT' });
      works.call(this, path);
    };
    try {
      await engine.close();
      expect(synced).toContain('pg_wal');
    } finally {
      disk.sync = works;
    }
  });

  test('a disk that fails is reported, and asked again', async () => {
    const warned: string[] = [];
    const onWarning = ({ message }: Error): void => void warned.push(message);
    process.on('warning', onWarning);
    const works = disk.syncLater;
    disk.syncLater = () => Promise.reject(new Error('the disk is gone'));
    try {
      await insert(1, 1);
      await pass(LONGER_THAN_THE_DELAY);
      expect(warned).toContain('the log of the embedded database cannot be synced (the disk is gone)');
    } finally {
      disk.syncLater = works;
      process.off('warning', onWarning);
    }
    // Without a further write, it is tried again.
    await pass(LONGER_THAN_THE_DELAY);
    expect(await idsAfterFailure()).toEqual([1]);
  });
});
