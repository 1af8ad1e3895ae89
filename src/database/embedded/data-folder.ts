/** The creation of a folder of the embedded database, its version, and its errors as the operator reads them. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { reasonOf, unlessMissing } from '../../thrown.ts';
import { ENGINE_MAIN } from './engine-socket.ts';

/** The major version of the PostgreSQL in the embedded engine. */
const ENGINE_MAJOR = 18;

const BACKUP = 'restore a backup into an empty folder (bylaw restore FILE --data DIR)';

export class FolderUnusable extends Error {
  constructor(folder: string, reason: string, cause?: unknown) {
    super(`the embedded database in ${folder} cannot be opened: ${reason}`, { cause });
    this.name = 'FolderUnusable';
  }
}

/**
 * Creates a missing folder in a process of its own, whose end gives back the memory that only the creation needs: 130 MiB.
 * If that fails, the engine's thread creates it or reports the error. Throws FolderUnusable for another version.
 */
export async function ensureFolder(folder: string): Promise<void> {
  if (lstatSync(folder, { throwIfNoEntry: false }) !== undefined) return requireSameVersion(folder);
  const [parent, prefix] = [dirname(folder), `${basename(folder)}.new-`];
  const created = join(parent, prefix + process.pid);
  try {
    // The creator of a service that was killed may still write into its own.
    const unfinished = (await readdir(parent)).filter((name) => name.startsWith(prefix));
    for (const name of unfinished) await rm(join(parent, name), { recursive: true, force: true });
    await mkdir(created, { mode: 0o700 });
    const stdio = ['ignore', 'ignore', 'ignore', 'ipc'] as const;
    const creator = fork(fileURLToPath(ENGINE_MAIN), [created], { execArgv: [], stdio: [...stdio] });
    const [code] = await once(creator, 'exit');
    if (code === 0) await rename(created, folder);
  } catch {
  } finally {
    await rm(created, { recursive: true, force: true });
  }
}

/** Throws FolderUnusable for a folder of another version. A missing folder is good. */
export async function requireSameVersion(folder: string): Promise<void> {
  const version = await unlessMissing(readFile(join(folder, 'PG_VERSION'), 'utf8'));
  if (version === undefined) return;
  const major = Number(version.trim());
  if (major === ENGINE_MAJOR) return;
  if (!Number.isInteger(major) || major <= 0) throw damaged(folder, new Error('its file PG_VERSION is not a version'));
  throw new FolderUnusable(
    folder,
    `PostgreSQL ${major} made it, and this version of bylaw has PostgreSQL ${ENGINE_MAJOR}; ` +
      'export the records with the version of bylaw that made it (bylaw export --out DIR), and import them into an empty folder with this one',
  );
}

export const damaged = (folder: string, cause: unknown): FolderUnusable =>
  new FolderUnusable(folder, `it is damaged (${engineReason(cause)}); ${BACKUP}`, cause);

/** The engine ends with a message for those who build it. */
function engineReason(cause: unknown): string {
  const reason = reasonOf(cause);
  return /^Aborted\(|failed to initialize|unreachable|memory access/.test(reason)
    ? 'the engine does not start on it'
    : reason;
}
