/** The version of a folder of the embedded database, and its errors as the operator reads them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, reasonOf } from '../../thrown.ts';

/** The major version of the PostgreSQL in the embedded engine. */
const ENGINE_MAJOR = 18;

const BACKUP = 'restore a backup into an empty folder (bylaw restore FILE --data DIR)';

export class FolderUnusable extends Error {
  constructor(folder: string, reason: string, cause?: unknown) {
    super(`the embedded database in ${folder} cannot be opened: ${reason}`, { cause });
    this.name = 'FolderUnusable';
  }
}

/** Throws FolderUnusable for a folder of another version. A missing folder is good. */
export async function requireSameVersion(folder: string): Promise<void> {
  const version = await readFile(join(folder, 'PG_VERSION'), 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
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
