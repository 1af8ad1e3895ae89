/** The embedded database of tests: each suite begins with a copy of one that was made for the whole run, empty and its own. */
import { openAsBlob } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';
import { inject } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { engineCode } from '../../src/database/embedded/engine-socket.ts';
import { openDatabase } from '../../src/database/open-database.ts';

export const emptySnapshot = (): Promise<Blob> => openAsBlob(inject('emptyDatabase').tar);

/** The engine alone, in this thread. All engines of a process share their code, whose compilation takes a second of a processor. */
export async function openEngine(options: PGliteOptions = {}): Promise<PGlite> {
  return PGlite.create({ ...options, pgliteWasmModule: (await engineCode()) as PGliteOptions['pgliteWasmModule'] });
}

/** In memory. */
export async function openEmbeddedDatabase(): Promise<Database> {
  return openDatabase({ snapshot: await emptySnapshot() });
}

/** A folder for `--data` in which a service finds a database without tables. */
export async function fillDataFolder(folder: string): Promise<void> {
  await cp(inject('emptyDatabase').folder, join(folder, 'database'), { recursive: true });
}
