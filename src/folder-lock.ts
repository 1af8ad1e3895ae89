/**
 * A lock keeps a second process out of a data folder, because it would silently lose rows. The lock
 * file names its holder by process id and start time, so that the end of a killed holder shows even
 * after its id is reused.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from './thrown.ts';

export class FolderInUse extends Error {
  readonly pid: number;
  constructor(folder: string, holder: LockHolder) {
    const where = holder.host === hostname() ? '' : ` on ${holder.host}`;
    super(`the data folder ${folder} is in use by process ${holder.pid}${where}; stop it, or take another folder`);
    this.name = 'FolderInUse';
    this.pid = holder.pid;
  }
}

interface LockHolder {
  readonly pid: number;
  /** Empty if unknown. */
  readonly started: string;
  readonly host: string;
}

export interface FolderLock {
  release(): Promise<void>;
  /** Instead of `release`, if the holder made the folder and removes it next. */
  remove(): Promise<void>;
}

const LOCK_HEARTBEAT_MS = 2_000;
const LOCK = /^lock(?:\.[1-9][0-9]*)?$/;
const DRAFT = 'draft-lock-';

/**
 * The holder is the process that made the lock file of the highest generation: `lock` is generation
 * 0, `lock.7` generation 7. A lock whose holder has ended is never removed in place, because a slow
 * rival could remove its successor; a rival makes the next generation instead, which only one
 * process can do.
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const started = processOf(process.pid)?.started ?? '';
  const holder: LockHolder = { pid: process.pid, started, host: hostname() };
  for (let attempt = 0; attempt < 20; attempt++) {
    const earlier = await generationsOf(folder);
    const last = earlier.at(-1);
    if (last !== undefined && !(await isFree(folder, last))) continue;
    const own = last === undefined ? 0 : last + 1;
    const path = lockPath(folder, own);
    if (!(await createOnce(folder, path, JSON.stringify(holder)))) continue;
    // INVARIANT: a process that is late here sees the later generation, and gives up its own.
    if ((await generationsOf(folder)).at(-1) !== own) {
      await rm(path, { force: true });
      continue;
    }
    for (const generation of earlier) await rm(lockPath(folder, generation), { force: true });
    return hold(path);
  }
  throw new Error(`the lock of ${folder} changes hands too fast`);
}

/** Returns true for the name of a file that only names the holder of a folder. */
export const isLockFile = (name: string): boolean => LOCK.test(name) || name.startsWith(DRAFT);

const lockPath = (folder: string, generation: number): string =>
  join(folder, generation === 0 ? 'lock' : `lock.${generation}`);

/** The earliest first. */
async function generationsOf(folder: string): Promise<readonly number[]> {
  const locks = (await readdir(folder)).filter((name) => LOCK.test(name));
  return locks.map((name) => Number(name.slice('lock.'.length))).sort((a, b) => a - b);
}

/** Returns false if the file has vanished. Throws FolderInUse if its holder lives. */
async function isFree(folder: string, generation: number): Promise<boolean> {
  const path = lockPath(folder, generation);
  const found = await readFile(path, 'utf8').catch(() => undefined);
  if (found === undefined) return false;
  const holder = parseHolder(found);
  if (holder !== undefined && (await isAlive(holder, path))) throw new FolderInUse(folder, holder);
  return true;
}

async function createOnce(folder: string, path: string, text: string): Promise<boolean> {
  const draft = join(folder, `${DRAFT}${randomUUID()}`);
  await writeFile(draft, text, { flag: 'wx', mode: 0o600 });
  try {
    // A link appears with its complete content.
    await link(draft, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

function parseHolder(text: string): LockHolder | undefined {
  try {
    const value = JSON.parse(text) as LockHolder;
    return typeof value.pid === 'number' && typeof value.started === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

async function isAlive({ pid, started, host }: LockHolder, path: string): Promise<boolean> {
  if (host !== hostname()) return beats(path);
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) !== 'EPERM') return false;
  }
  const found = processOf(pid);
  // A process that ended and is not reaped yet still takes signals, and holds nothing.
  return found === undefined || (found.started === started && !/^[ZX]/.test(found.state));
}

/** Another host's processes cannot be seen; their heartbeat can. */
async function beats(path: string): Promise<boolean> {
  const touched = async () => (await stat(path).catch(() => undefined))?.mtimeMs;
  const before = await touched();
  await sleep(LOCK_HEARTBEAT_MS * 3);
  return (await touched()) !== before;
}

interface SeenProcess {
  readonly state: string;
  /** Unique among processes with this id: on Linux the boot id and the start tick. */
  readonly started: string;
}

/** Returns undefined if the system shows no such process. */
function processOf(pid: number): SeenProcess | undefined {
  try {
    if (process.platform !== 'linux') {
      const line = execFileSync('ps', ['-o', 'state=', '-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
      const [, state = '', started = ''] = /^(\S+)\s+(.*)$/.exec(line.trim())!;
      return { state, started };
    }
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Fields from the state on (proc_pid_stat(5)). The name before, in parentheses, holds any text.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return { state: fields[0]!, started: `${bootId} ${fields[19]}` };
  } catch {
    return undefined;
  }
}

function hold(path: string): FolderLock {
  const touch = (): void => void utimes(path, new Date(), new Date()).catch(() => undefined);
  const heartbeat = setInterval(touch, LOCK_HEARTBEAT_MS).unref();
  return {
    async release() {
      clearInterval(heartbeat);
      // The file stays, emptied: generations must never start from the beginning again.
      await truncate(path).catch(() => undefined);
    },
    async remove() {
      clearInterval(heartbeat);
      await rm(path, { force: true });
    },
  };
}
