// @module-tag long
/** A copy of a database never deletes the files of the original, and what was swept can be had back for a week. */
import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { LocalStorage } from '../../src/files/storage/local.ts';
import { Ownership } from '../../src/files/storage/ownership.ts';
import { S3Storage } from '../../src/files/storage/s3.ts';
import { readS3Place } from '../../src/files/storage/s3-place.ts';
import { type Storage, StorageUnavailable } from '../../src/files/storage/storage.ts';
import { raw } from '../../src/sql.ts';
import { openEmbeddedDatabase } from '../support/embedded.ts';
import { CREDENTIALS, ProtocolServer } from '../support/s3/protocol-server.ts';
import { until } from '../support/until.ts';

const ID = '01900000-0000-7000-8000-000000000001';
const OTHER = '01900000-0000-7000-8000-000000000002';
const nobody = async (): Promise<ReadonlySet<string>> => new Set();

async function put(storage: Storage, key: string): Promise<void> {
  const incoming = await storage.incoming(key);
  await incoming.write(Buffer.from(`bytes of ${key}`));
  await incoming.publish();
  // A file system counts fractions of a millisecond, and the clock of a sweep does not: the bytes would be from later.
  const written = Date.now();
  await until('the bytes are older than the sweep', () => Date.now() > written);
}

const folders: string[] = [];
let bucket: ProtocolServer;
beforeAll(async () => {
  Object.assign(process.env, CREDENTIALS);
  bucket = await ProtocolServer.start();
});
afterAll(async () => {
  await bucket.close();
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

async function localFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bylaw-copies-'));
  folders.push(folder);
  return folder;
}
const STORAGES: Readonly<Record<string, () => Promise<Storage>>> = {
  'a local folder': async () => new LocalStorage(await localFolder()),
  'a bucket': async () => new S3Storage(readS3Place(bucket.place())!),
};

describe.each(Object.keys(STORAGES))('%s', (name) => {
  let storage: Storage;
  beforeAll(async () => {
    storage = await STORAGES[name]!();
  });

  test('a storage keeps the mark of its database, and never sweeps it', async () => {
    expect(await storage.mark()).toBeUndefined();
    await storage.setMark(ID);
    await storage.setMark(OTHER);
    await storage.sweep({ grace: 0, alive: nobody });
    expect(await storage.mark()).toBe(OTHER);
  });

  test('a storage restores swept bytes when a record comes for them', async () => {
    await put(storage, ID);
    await put(storage, `${ID}.w16hcover`);
    await put(storage, OTHER);
    expect(await storage.sweep({ grace: 0, alive: nobody })).toBe(3);
    expect([await storage.size(ID), await storage.size(OTHER)]).toEqual([undefined, undefined]);
    expect(await storage.sweep({ grace: 0, alive: async () => new Set([ID]) })).toBe(0);
    expect([...(await storage.sizes(ID)).keys()].toSorted()).toEqual([ID, `${ID}.w16hcover`]);
    expect(await storage.size(OTHER)).toBeUndefined();
    await storage.remove(ID);
  });
});

test('a local folder keeps its trash for a week', async () => {
  const folder = await localFolder();
  const storage = new LocalStorage(folder);
  for (const key of [ID, OTHER]) await put(storage, key);
  await storage.sweep({ grace: 0, alive: nobody });
  const trashed = (): readonly string[] => readdirSync(join(folder, 'trash')).toSorted();
  expect([trashed(), Date.now() - statSync(join(folder, 'trash', ID)).mtimeMs < 60_000]).toEqual([[ID, OTHER], true]);
  const age = (key: string, days: number): void => {
    const then = new Date(Date.now() - days * 86_400_000);
    utimesSync(join(folder, 'trash', key), then, then);
  };
  age(ID, 6.9);
  age(OTHER, 7.1);
  await storage.sweep({ grace: 0, alive: nobody });
  expect(trashed()).toEqual([ID]);
});

describe('the mark', () => {
  const MARKS = 'CREATE TABLE "_files_marks" (mark uuid PRIMARY KEY, at timestamptz NOT NULL)';
  const databases: Database[] = [];
  afterAll(() => Promise.all(databases.map((db) => db.close())));
  const open = async (): Promise<Database> => {
    const db = await openEmbeddedDatabase();
    databases.push(db);
    await db.run(raw(MARKS));
    return db;
  };
  const copyOf = async (db: Database): Promise<Database> => {
    const copy = await open();
    for (const [mark] of await db.rows(raw('SELECT mark FROM "_files_marks"')))
      await copy.run(raw(`INSERT INTO "_files_marks" VALUES ('${mark}', now())`));
    return copy;
  };

  test('the mark distinguishes the database that claimed last from its copies, until one adopts', async () => {
    const storage = new LocalStorage(await localFolder());
    const original = await open();
    const owner = new Ownership(original, storage);
    expect(await owner.holds()).toBe(true);
    await owner.claim();
    const copy = new Ownership(await copyOf(original), storage);
    await owner.claim();
    expect([await owner.holds(), await copy.holds()]).toEqual([true, false]);
    await copy.claim();
    expect([await owner.holds(), await copy.holds()]).toEqual([false, true]);
  });

  test('the mark stays known when nodes claim at once, and after many claims', async () => {
    const storage = new LocalStorage(await localFolder());
    const db = await open();
    const nodes = [1, 2, 3].map(() => new Ownership(db, storage));
    for (let round = 0; round < 25; round++) await Promise.all(nodes.map((node) => node.claim()));
    expect(await Promise.all(nodes.map((node) => node.holds()))).toEqual([true, true, true]);
    expect(await db.rows(raw('SELECT count(*) FROM "_files_marks"'))).toEqual([['64']]);
  });

  test('the mark of another program is not ours', async () => {
    const folder = await localFolder();
    const storage = new LocalStorage(folder);
    await storage.setMark("nonsense' OR true");
    expect([await new Ownership(await open(), storage).holds(), existsSync(join(folder, 'mark'))]).toEqual([
      false,
      true,
    ]);
  });
});

test('a folder that cannot be written makes the storage unavailable', async () => {
  const folder = await localFolder();
  const file = join(folder, 'a file');
  await new LocalStorage(folder).setMark(ID);
  const storage = new LocalStorage(join(folder, 'mark', 'below a file'));
  await expect(storage.incoming(ID)).rejects.toThrow(StorageUnavailable);
  await expect(storage.open(ID)).rejects.toThrow(StorageUnavailable);
  await expect(storage.size(ID)).rejects.toThrow(StorageUnavailable);
  expect(existsSync(file)).toBe(false);
});
