/** An embedded database without tables, made once for the whole run: that is PostgreSQL's initdb, seconds of a processor. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';

export interface EmptyDatabase {
  /** As a tar. */
  readonly tar: string;
  /** As a folder. */
  readonly folder: string;
}

export async function makeEmptyDatabase(): Promise<EmptyDatabase & { remove(): Promise<void> }> {
  const place = await mkdtemp(join(tmpdir(), 'bylaw-empty-'));
  const made = { tar: join(place, 'database.tar'), folder: join(place, 'database') };
  const engine = await PGlite.create(made.folder);
  await writeFile(made.tar, (await dumpEmpty(engine)).stream());
  await engine.close();
  return { ...made, remove: () => rm(place, { recursive: true, force: true }) };
}

/** The content of the engine, which is empty, as a tar. */
export async function dumpEmpty(engine: PGlite): Promise<Blob> {
  // No copy makes a database from a template: it is a third smaller, and opens a quarter faster.
  await engine.exec('UPDATE pg_database SET datistemplate = false');
  for (const template of ['template0', 'template1']) await engine.exec(`DROP DATABASE ${template}`);
  return engine.dumpDataDir('none');
}
