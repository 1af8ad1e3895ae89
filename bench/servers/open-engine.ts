/**
 * PGlite on a folder, as its package opens one. It writes each commit to the files and never asks the disk to keep them (`fsync = off`), so
 * that a process that is killed loses nothing, and a machine without power may lose the database.
 */
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';

/** `folder` is a copy of a data folder of the service. */
export async function openEngine(folder: string): Promise<PGlite> {
  const engine = await PGlite.create(join(folder, 'database'));
  await engine.exec(`SET TimeZone = 'UTC'`);
  return engine;
}
