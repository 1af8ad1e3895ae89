/** The paths of the local storage, and the meaning of its errors. */
import { createHash } from 'node:crypto';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../../thrown.ts';
import { idOfKey, type StorageKey, StorageUnavailable } from './storage.ts';

/** Names of folders in the root that hold no published files. No hash is one of them. */
export const INCOMING = 'incoming';
export const TRASH_FOLDER = 'trash';

export function filePlace(root: string, key: StorageKey): string {
  const hash = createHash('sha256').update(idOfKey(key)).digest('hex');
  return join(root, hash.slice(0, 2), hash.slice(2, 4), key);
}

export const entriesOf = async (folder: string): Promise<readonly string[]> =>
  (await unlessMissing(readdir(folder))) ?? [];

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * An error of the system (a full or read-only disk, a folder that is gone) is not one of the
 * request: it may succeed once the operator has mended it.
 */
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw isSystemError(error) ? new StorageUnavailable(error) : error;
  }
}

const isSystemError = (error: unknown): boolean => error instanceof Error && 'errno' in error && 'code' in error;
