/** The place of a database, which its copies do not share, but for a snapshot of a whole server. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { namedCells } from '../../database/cells.ts';
import type { Database } from '../../database/contract.ts';
import { raw } from '../../sql.ts';
import { codeOf, unlessMissing } from '../../thrown.ts';
import type { StoragePlace } from './open-storage.ts';

/** Has no space. */
export function placeOfDatabase(db: Database, place: StoragePlace): Promise<string> {
  return db.kind === 'postgres' ? placeOnServer(db) : placeOfFolder(place);
}

/** The system identifier is created with the cluster, the oids with the database and the schema. */
async function placeOnServer(db: Database): Promise<string> {
  const [row] = await db.rows(
    raw(`
    SELECT d.oid, c.relnamespace
      FROM pg_database d, pg_class c
     WHERE d.datname = current_database()
       AND c.oid = '"_files_marks"'::regclass`),
  );
  const { oid, schema } = namedCells(row, 'oid', 'schema');
  const [control] = await db.rows(raw('SELECT system_identifier FROM pg_control_system()')).catch((error) => {
    // A provider may have revoked the right, or have no such function.
    if (['42501', '42883'].includes(codeOf(error) as string)) return [];
    throw error;
  });
  return `${control?.[0] ?? 'server'}:${oid}:${schema}`;
}

/**
 * Files in the data folder are copied and moved together with the embedded database in it. A bucket is
 * shared by all copies of the folder; these differ in the file that the database was created with.
 */
async function placeOfFolder({ data, files }: StoragePlace): Promise<string> {
  if (files === undefined) return 'folder';
  const created = await unlessMissing(stat(join(resolve(data), 'database', 'PG_VERSION'), { bigint: true }));
  return created === undefined ? 'memory' : `folder:${created.ino}:${created.birthtimeNs}`;
}
