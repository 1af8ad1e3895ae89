/** A second data folder with the same rows, for a server of its own. */
import { cp } from 'node:fs/promises';
import { basename } from 'node:path';
import { isLockFile } from '../../src/folder-lock.ts';

/** `from` must not be in use. Its locks stay behind: they name who holds or held `from`. */
export const copyDataFolder = (from: string, to: string): Promise<void> =>
  cp(from, to, { recursive: true, errorOnExist: true, force: false, filter: (path) => !isLockFile(basename(path)) });
