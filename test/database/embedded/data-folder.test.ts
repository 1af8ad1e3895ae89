// @module-tag long
/** A damaged folder of the embedded database, or one of another version, is named in a sentence, and left as it is. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FolderUnusable } from '../../../src/database/embedded/data-folder.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { raw } from '../../../src/sql.ts';
import { fillDataFolder } from '../../support/embedded/embedded.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bylaw-folder-'));
  await fillDataFolder(folder);
  const db = await openDatabase({ dataDir: folder });
  await db.run(raw('CREATE TABLE kept (id int)'));
  await db.close();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const FAULTS = {
  'PG_VERSION of an older one': [
    'PG_VERSION',
    '15\n',
    /PostgreSQL 15 made it, and this version of bylaw has PostgreSQL \d+; export/,
  ],
  'PG_VERSION of a newer one': ['PG_VERSION', '99\n', /PostgreSQL 99 made it/],
  'PG_VERSION that is none': [
    'PG_VERSION',
    '\0\0\0',
    /it is damaged \(its file PG_VERSION is not a version\); restore a backup/,
  ],
  'a control file of garbage': [
    'global/pg_control',
    'garbage',
    /it is damaged \(the engine does not start on it\); restore a backup/,
  ],
} as const;

it.each(Object.keys(FAULTS))(
  '%s',
  async (name) => {
    const [file, content, reason] = FAULTS[name as keyof typeof FAULTS];
    const path = join(folder, 'database', file);
    const before = await readFile(path);
    await writeFile(path, content);
    const error = await openDatabase({ dataDir: folder }).then(
      (db) => db.close(),
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(FolderUnusable);
    expect((error as Error).message).toContain(
      `the embedded database in ${join(folder, 'database')} cannot be opened: `,
    );
    expect((error as Error).message).toMatch(reason);
    await writeFile(path, before);
  },
  60_000,
);

it('a folder opens again with its content when the error is mended', async () => {
  const db = await openDatabase({ dataDir: folder });
  expect(await db.rows(raw('SELECT count(*) FROM kept'))).toEqual([['0']]);
  await db.close();
});
