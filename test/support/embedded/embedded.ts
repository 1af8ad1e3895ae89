/** The embedded database of tests: each suite begins with a copy of one that was made for the whole run, empty and its own. */
import { openAsBlob } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';
import { inject } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { engineCode } from '../../../src/database/embedded/engine-socket.ts';
import { openDatabase } from '../../../src/database/open-database.ts';

export const emptySnapshot = (): Promise<Blob> => openAsBlob(inject('emptyDatabase').tar);

/** The service's own. The default holds 128 MB, and each engine in this thread makes V8 collect all of the heap. */
const SMALL_BUFFERS = ['-c', 'shared_buffers=16MB'];

/** The engine alone, in this thread. All engines of a process share their code, whose compilation takes a second of a processor. */
export async function openEngine(options: PGliteOptions = {}): Promise<PGlite> {
  const code = (await engineCode()) as PGliteOptions['pgliteWasmModule'];
  const startParams = [...(options.startParams ?? PGlite.defaultStartParams), ...SMALL_BUFFERS];
  const engine = await PGlite.create({ ...options, startParams, pgliteWasmModule: code });
  engines.push(engine);
  return engine;
}
const engines: PGlite[] = [];

/** Some seconds after its last statement, an engine that is open sets timers without end if another file has stopped the clock. */
export async function closeEngines(): Promise<void> {
  await Promise.all(engines.splice(0).map((engine) => engine.closed || engine.close()));
}

/** In memory. */
export async function openEmbeddedDatabase(): Promise<Database> {
  return openDatabase({ snapshot: await emptySnapshot() });
}

/** A folder for `--data` in which a service finds a database without tables. */
export async function fillDataFolder(folder: string): Promise<void> {
  await cp(inject('emptyDatabase').folder, join(folder, 'database'), { recursive: true });
}
