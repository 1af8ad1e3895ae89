/** The lock of a data folder: one process holds it, and a dead holder keeps no process out. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lockFolder } from '../src/folder-lock.ts';

const run = promisify(execFile);
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bylaw-lock-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Reads the lock of the newest generation. */
const lockOf = async () => {
  const names = (await readdir(folder)).filter((name) => /^lock(?:\.\d+)?$/.test(name));
  const newest = names.toSorted((a, b) => Number(a.slice(5)) - Number(b.slice(5))).at(-1)!;
  return JSON.parse(await readFile(join(folder, newest), 'utf8'));
};

test('a lock passes on from a dead holder, also after its process id is reused', async () => {
  const { stdout } = await run(process.execPath, ['-e', 'console.log(process.pid)']);
  for (const holder of [
    { pid: Number(stdout), started: 'once', host: hostname() },
    { pid: process.ppid, started: 'at another time', host: hostname() },
  ]) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
    await writeFile(join(folder, 'lock'), JSON.stringify(holder));
    const lock = await lockFolder(folder);
    expect((await lockOf()).pid).toBe(process.pid);
    await lock.release();
  }
});

test('a lock passes on from a killed holder that its parent has not reaped', async () => {
  // `sleep` has taken the place of the shell, and never asks what became of the shell's child.
  const script = '"$0" "$1" "$2" & exec sleep 60';
  const holder = [process.execPath, join(import.meta.dirname, 'hold-folder.ts'), folder];
  const parent = spawn('/bin/sh', ['-c', script, ...holder], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [said] = await once(parent.stdout, 'data');
    const pid = Number(said);
    await expect(lockFolder(folder)).rejects.toMatchObject({ name: 'FolderInUse', pid });
    process.kill(pid, 'SIGKILL');
    const status = async () => /\) (\S)/.exec(await readFile(`/proc/${pid}/stat`, 'utf8'))![1];
    while ((await status()) !== 'Z') await new Promise((resolve) => setTimeout(resolve, 5));
    // It still takes signals.
    process.kill(pid, 0);
    const lock = await lockFolder(folder);
    expect((await lockOf()).pid).toBe(process.pid);
    await lock.release();
  } finally {
    parent.kill('SIGKILL');
  }
});

test('a lock lets one of many in', async () => {
  const dead = JSON.stringify({ pid: 2 ** 22 - 1, started: 'once', host: hostname() });
  for (let round = 0; round < 20; round++) {
    const contested = join(folder, `contested${round}`);
    await mkdir(contested);
    await writeFile(join(contested, 'lock'), dead);
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => lockFolder(contested)));
    const held = outcomes.filter(({ status }) => status === 'fulfilled');
    expect(held).toHaveLength(1);
    await (held[0] as PromiseFulfilledResult<{ release(): Promise<void> }>).value.release();
  }
});
