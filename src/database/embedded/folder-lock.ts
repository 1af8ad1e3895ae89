/**
 * A lock keeps a second process out of a data folder, because it would silently lose rows. The lock
 * file names its holder by process id and start time, so that the end of a killed holder shows even
 * after its id is reused.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, open, readdir, readFile, rm, stat, truncate, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../thrown.ts';

export class FolderInUse extends Error {
  readonly folder: string;
  readonly pid: number;
  constructor(folder: string, holder: Holder) {
    const where = holder.host === hostname() ? '' : ` on ${holder.host}`;
    super(`the data folder ${folder} is in use by process ${holder.pid}${where}; stop it, or take another folder`);
    this.name = 'FolderInUse';
    this.folder = folder;
    this.pid = holder.pid;
  }
}

interface Holder {
  readonly pid: number;
  readonly started: string;
  readonly host: string;
}
export interface FolderLock {
  release(): Promise<void>;
  /** Instead of `release`, if the holder made the folder and removes it next. */
  remove(): Promise<void>;
}

const LOCK_HEARTBEAT_MS = 2_000;
const LOCK = /^lock(?:\.([1-9][0-9]*))?$/;
const DRAFT = 'draft-lock-';

/**
 * The holder is the process that made the lock file of the highest generation: `lock` is generation
 * 0, `lock.7` generation 7. A lock whose holder has ended is never removed in place, because a slow
 * rival could remove its successor; a rival makes the next generation instead, which only one
 * process can do.
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const text = JSON.stringify({ pid: process.pid, started: processStart(process.pid), host: hostname() });
  for (let attempt = 0; attempt < 20; attempt++) {
    const last = await newestGeneration(folder);
    if (last !== undefined && !(await isFree(folder, last))) continue;
    const own = last === undefined ? 0 : last + 1;
    if (!(await createOnce(folder, own, text))) continue;
    // INVARIANT: a process that is late here sees the later generation, and gives up its own.
    if ((await newestGeneration(folder)) === own) return hold(folder, own);
    await rm(pathOf(folder, own), { force: true });
  }
  throw new Error(`the lock of ${folder} changes hands too fast`);
}

/** Returns true for the name of a file that only names the holder of a folder. */
export const isLockFile = (name: string): boolean => LOCK.test(name) || name.startsWith(DRAFT);

const pathOf = (folder: string, generation: number): string =>
  join(folder, generation === 0 ? 'lock' : `lock.${generation}`);

async function newestGeneration(folder: string): Promise<number | undefined> {
  const generations = (await readdir(folder)).flatMap((name) => {
    const digits = LOCK.exec(name);
    return digits === null ? [] : [Number(digits[1] ?? 0)];
  });
  return generations.length === 0 ? undefined : Math.max(...generations);
}

/** Returns false if the file has vanished. Throws FolderInUse if its holder lives. */
async function isFree(folder: string, generation: number): Promise<boolean> {
  const path = pathOf(folder, generation);
  const found = await readFile(path, 'utf8').catch(() => undefined);
  if (found === undefined) return false;
  const holder = parseHolder(found);
  if (holder !== undefined && (await isAlive(holder, path))) throw new FolderInUse(folder, holder);
  return true;
}

async function createOnce(folder: string, generation: number, text: string): Promise<boolean> {
  const draft = join(folder, `${DRAFT}${randomUUID()}`);
  const file = await open(draft, 'wx', 0o600);
  await file.writeFile(text);
  await file.close();
  try {
    // A link appears with its complete content.
    await link(draft, pathOf(folder, generation));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

function parseHolder(text: string): Holder | undefined {
  try {
    const value = JSON.parse(text) as Holder;
    return typeof value.pid === 'number' && typeof value.started === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

async function isAlive(holder: Holder, path: string): Promise<boolean> {
  if (holder.host !== hostname()) return beats(path);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (codeOf(error) !== 'EPERM') return false;
  }
  if (isZombie(holder.pid)) return false;
  const started = processStart(holder.pid);
  return started === '' || started === holder.started;
}

/** A process that ended and is not reaped yet still takes signals, and holds nothing. */
function isZombie(pid: number): boolean {
  try {
    const state = process.platform === 'linux' ? procStatusOf(pid)[0] : psOf(pid, 'state');
    return /^[ZX]/.test(state ?? '');
  } catch {
    return false;
  }
}

/** Another host's processes cannot be seen; their heartbeat can. */
async function beats(path: string): Promise<boolean> {
  const touched = async () => (await stat(path).catch(() => undefined))?.mtimeMs;
  const before = await touched();
  await sleep(LOCK_HEARTBEAT_MS * 3);
  return (await touched()) !== before;
}

/** Unique among processes with this id: on Linux the boot id and the start tick. Empty if unknown. */
function processStart(pid: number): string {
  try {
    if (process.platform === 'linux') return linuxStartOf(pid);
    return psOf(pid, 'lstart');
  } catch {
    return '';
  }
}

const linuxStartOf = (pid: number): string =>
  `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${procStatusOf(pid)[19]}`;

/**
 * The fields of /proc/PID/stat from the state on (proc_pid_stat(5)). The name before, in
 * parentheses, holds any text.
 */
function procStatusOf(pid: number): readonly string[] {
  const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return line.slice(line.lastIndexOf(')') + 2).split(' ');
}

const psOf = (pid: number, column: string): string =>
  execFileSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' }).trim();

async function hold(folder: string, generation: number): Promise<FolderLock> {
  const path = pathOf(folder, generation);
  for (let earlier = generation - 1; earlier >= 0 && earlier > generation - 8; earlier--)
    await rm(pathOf(folder, earlier), { force: true });
  const beat = setInterval(
    () => void utimes(path, new Date(), new Date()).catch(() => undefined),
    LOCK_HEARTBEAT_MS,
  ).unref();
  return {
    async release() {
      clearInterval(beat);
      // The file stays, emptied: generations must never start from the beginning again.
      await truncate(path).catch(() => undefined);
    },
    async remove() {
      clearInterval(beat);
      await rm(path, { force: true });
    },
  };
}
