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
  // No test makes a database from a template: the copies are a third smaller, and open a quarter faster.
  await engine.exec('UPDATE pg_database SET datistemplate = false');
  for (const template of ['template0', 'template1']) await engine.exec(`DROP DATABASE ${template}`);
  const dump = await engine.dumpDataDir('none');
  await writeFile(made.tar, dump.stream());
  await engine.close();
  return { ...made, remove: () => rm(place, { recursive: true, force: true }) };
}
