import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { copyDataFolder } from '../../bench/support/copy-data-folder.ts';
import { FolderInUse, lockFolder } from '../../src/folder-lock.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'bylaw-copy-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

test('a copy has the files and no lock while a process holds the folder', async () => {
  const [from, to] = [join(root, 'from'), join(root, 'to')];
  const lock = await lockFolder(from);
  await mkdir(join(from, 'database', 'base'), { recursive: true });
  await writeFile(join(from, 'database', 'base', '1'), 'rows');
  await copyDataFolder(from, to);
  expect(await readdir(to)).toEqual(['database']);
  expect(await readFile(join(to, 'database', 'base', '1'), 'utf8')).toBe('rows');
  const own = await lockFolder(to);
  await expect(lockFolder(from)).rejects.toThrow(FolderInUse);
  await Promise.all([own.release(), lock.release()]);
});

test('a copy leaves released locks behind', async () => {
  const [from, to] = [join(root, 'from'), join(root, 'to')];
  for (let generation = 0; generation < 3; generation++) await (await lockFolder(from)).release();
  await writeFile(join(from, 'key'), 'k');
  await copyDataFolder(from, to);
  expect(await readdir(to)).toEqual(['key']);
});

test('a copy keeps existing files', async () => {
  const [from, to] = [join(root, 'from'), join(root, 'to')];
  for (const folder of [from, to]) {
    await mkdir(folder);
    await writeFile(join(folder, 'key'), folder);
  }
  await expect(copyDataFolder(from, to)).rejects.toThrow('already exists');
  expect(await readFile(join(to, 'key'), 'utf8')).toBe(to);
});
