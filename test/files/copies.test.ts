// @module-tag long
/** A copy of a database never deletes the files of the original, and what was swept can be had back for a week. */
import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { LocalStorage } from '../../src/files/storage/local.ts';
import { Ownership } from '../../src/files/storage/ownership.ts';
import { S3Storage } from '../../src/files/storage/s3.ts';
import { readS3Place } from '../../src/files/storage/s3-place.ts';
import { type Storage, StorageUnavailable } from '../../src/files/storage/storage.ts';
import { openLog } from '../../src/http/observe/log.ts';
import { type Service, startService } from '../../src/service/start-service.ts';
import { raw } from '../../src/sql.ts';
import { Client } from '../support/client.ts';
import { CREDENTIALS, ProtocolServer } from '../support/s3/protocol-server.ts';
import { cheapPasswords, schemaFrom } from '../support/service.ts';
import { ONE_KIND, openKind } from '../support/store-world.ts';
import { until } from '../support/until.ts';
import { upload } from './sending.ts';

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
    const db = await openKind(ONE_KIND[0]!);
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

  const isOurs = async (...owners: readonly Ownership[]): Promise<readonly boolean[]> => {
    const found: boolean[] = [];
    for (const owner of owners) found.push((await owner.objection()) === undefined);
    return found;
  };

  test('the mark distinguishes the database that claimed last from its copies, until one adopts', async () => {
    const storage = new LocalStorage(await localFolder());
    const original = await open();
    const owner = new Ownership(original, storage, 'here');
    expect(await isOurs(owner)).toEqual([true]);
    await owner.claim();
    const copy = new Ownership(await copyOf(original), storage, 'here');
    await owner.claim();
    expect(await isOurs(owner, copy)).toEqual([true, false]);
    await copy.adopt();
    await copy.claim();
    expect(await isOurs(owner, copy, owner, copy)).toEqual([false, true, false, true]);
  });

  test('the mark objects to a copy in another place, whatever it knows, until it adopts', async () => {
    const storage = new LocalStorage(await localFolder());
    const original = await open();
    const owner = new Ownership(original, storage, 'here');
    await owner.claim();
    const copy = new Ownership(await copyOf(original), storage, 'there');
    expect(await copy.objection()).toContain('run `bylaw files adopt`');
    expect(await isOurs(owner, copy)).toEqual([true, false]);
    await copy.adopt();
    expect(await isOurs(owner, copy)).toEqual([false, true]);
  });

  test('the mark is contested by the original when a snapshot of the server has claimed, until one adopts', async () => {
    const storage = new LocalStorage(await localFolder());
    const original = await open();
    const owner = new Ownership(original, storage, 'here');
    await owner.claim();
    await owner.adopt();
    const copy = new Ownership(await copyOf(original), storage, 'here');
    await copy.claim();
    expect(await isOurs(copy, owner, copy, owner)).toEqual([true, false, false, false]);
    await owner.adopt();
    await owner.claim();
    expect(await isOurs(owner, copy, owner)).toEqual([true, false, true]);
  });

  test('the mark of an earlier version, without a place, is known', async () => {
    const storage = new LocalStorage(await localFolder());
    const db = await open();
    await db.run(raw(`INSERT INTO "_files_marks" VALUES ('${ID}', now())`));
    await storage.setMark(ID);
    expect(await isOurs(new Ownership(db, storage, 'here'))).toEqual([true]);
    await storage.setMark(OTHER);
    expect(await isOurs(new Ownership(db, storage, 'here'))).toEqual([false]);
  });

  test('the mark stays known when nodes claim at once, and after many claims', async () => {
    const storage = new LocalStorage(await localFolder());
    const db = await open();
    const nodes = [1, 2, 3].map(() => new Ownership(db, storage, 'here'));
    await nodes[0]!.adopt();
    for (let round = 0; round < 25; round++) await Promise.all(nodes.map((node) => node.claim()));
    expect(await isOurs(...nodes)).toEqual([true, true, true]);
    await db.run(raw(`UPDATE "_files_marks" SET at = at - interval '2 days'`));
    await nodes[0]!.claim();
    expect(await isOurs(...nodes)).toEqual([true, true, true]);
    // The claims of a day, the latest 64, and the adoption.
    expect(await db.rows(raw('SELECT count(*) FROM "_files_marks"'))).toEqual([['65']]);
  });

  test('the mark settles when every running copy has had time to contest it', async () => {
    const db = await open();
    const owner = new Ownership(db, new LocalStorage(await localFolder()), 'here');
    await owner.claim();
    expect(await owner.settledAge()).toBe(Number.POSITIVE_INFINITY);
    await db.run(raw(`UPDATE "_files_marks" SET at = now() - interval '3 hours'`));
    await owner.claim();
    expect(await owner.settledAge()).toBeCloseTo(3 * 3_600_000, -5);
  });

  test('the mark of another program is not ours', async () => {
    const folder = await localFolder();
    const storage = new LocalStorage(folder);
    await storage.setMark("nonsense' OR true");
    expect([await isOurs(new Ownership(await open(), storage, 'here')), await storage.mark()]).toEqual([
      [false],
      "nonsense' OR true",
    ]);
  });
});

describe.skipIf(inject('postgresUrl') === '')('a copy of a PostgreSQL database', () => {
  const SCHEMA = 'roles: [admin]\ncollections: { files: { access: { view: true, create: true } } }\n';
  const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };
  const names = ['original', 'copy'].map((name) => `bylaw_${name}_${process.pid}`) as [string, string];
  const [original, copy] = names;
  let server: pg.Client;
  beforeAll(async () => {
    server = new pg.Client({ connectionString: inject('postgresUrl') });
    await server.connect();
    await server.query(`CREATE DATABASE ${original}`);
  });
  afterAll(async () => {
    for (const name of names) await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await server.end();
  });

  test('a copy leaves the newer files of the original, and says so at once', async () => {
    const folder = await localFolder();
    const serveOn = async (database: string, errors: string[]): Promise<Service> => {
      const url = new URL(inject('postgresUrl').replace('@/', '@localhost/'));
      url.pathname = database;
      const env = { BYLAW_DATA: folder, BYLAW_ADMIN_EMAIL: ADMIN.email, BYLAW_ADMIN_PASSWORD: ADMIN.password };
      const log = openLog('error');
      log.logger.error = (({ error }: { error: string }, what: string) => errors.push(`${what}: ${error}`)) as never;
      return startService({
        config: readConfig({ port: '0' }, { ...env, BYLAW_RATE_LIMIT: 'off' }),
        schema: schemaFrom(SCHEMA),
        db: await openDatabase({ url: url.href, poolSize: 2, pipelines: 1 }),
        log,
        passwords: cheapPasswords(),
      });
    };
    const errors: string[] = [];
    const client = async ({ url }: Service): Promise<Client> => {
      const { body } = await new Client(url).post('/api/auth/login', ADMIN);
      return new Client(url, { Authorization: `Bearer ${body.access_token}` });
    };
    const service = await serveOn(original, errors);
    const reader = await client(service);
    const make = async (): Promise<string> => (await upload(reader, { bytes: 'kept' })).body.data.id;
    const files = [await make()];
    await server.query(`ALTER DATABASE ${original} ALLOW_CONNECTIONS false`);
    await server.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [original]);
    await server.query(`CREATE DATABASE ${copy} TEMPLATE ${original}`);
    await server.query(`ALTER DATABASE ${original} ALLOW_CONNECTIONS true`);
    await until('the original is ready again', async () => (await reader.get('/readyz')).status === 200);
    files.push(await make());
    // The original has not claimed its files since the copy was made, and a sweep spares young ones.
    const then = new Date(Date.now() - 3_600_000);
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
      if (entry.isFile() && files.includes(entry.name)) utimesSync(join(entry.parentPath, entry.name), then, then);
    errors.length = 0;
    const restored = await serveOn(copy, errors);
    await restored.app.files.sweep();
    await restored.stop();
    const statuses = await Promise.all(files.map(async (id) => (await reader.get(`/api/files/${id}/content`)).status));
    await service.stop();
    expect(statuses).toEqual([200, 200]);
    expect(errors[0]).toMatch(/^nothing is swept: .*in another place.*run `bylaw files adopt`/);
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
