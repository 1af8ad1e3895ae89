/** A folder for everything that the tests of a run write. It goes with the run, or with the next one where a run was killed. */
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const PREFIX = 'bylaw-run-';

/** Makes the folder of this process, and removes those of processes that have ended. */
export function makeRunFolder(): string {
  const place = process.env.TMPDIR ?? memoryFolder() ?? tmpdir();
  for (const name of readdirSync(place))
    if (name.startsWith(PREFIX) && !isRunning(Number(name.slice(PREFIX.length)))) removeFolder(join(place, name));
  const folder = join(place, nameOf(process.pid));
  mkdirSync(folder, { recursive: true });
  return folder;
}

export function removeRunFolder(): void {
  const folder = tmpdir();
  if (basename(folder) === nameOf(process.pid)) removeFolder(folder);
}

const nameOf = (pid: number): string => `${PREFIX}${pid}`;

/** Does not fail: processes of the tests that are ending may still write into it. */
function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // The next run removes the rest.
  }
}

/**
 * A file system in memory, where the machine has one with room: databases, installed packages and backups of the tests then do not
 * wait for a disk. No test is about a power failure of the machine.
 */
function memoryFolder(): string | undefined {
  try {
    const folder = '/dev/shm';
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    const isNoExec = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .some((line) => line.split(' ')[1] === folder && line.split(' ')[3]!.split(',').includes('noexec'));
    return bavail * bsize > 4_000_000_000 && !isNoExec ? folder : undefined;
  } catch {
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Another user's process runs.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
