/** Which files a delete tells of, after its commit: those that the database's cascades took, no more and no fewer. On both databases. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { param, sql } from '../../src/sql.ts';
import type { Database } from '../../src/store/contract.ts';
import { type Caller, hasPostgres, KINDS, openKind, refusal, stopPostgres, World } from './world.ts';

const SCHEMA = `
roles: { admin: {} }
collections:
  users:
    access: { list: true, read: true, delete: true }
  files:
    relations:
      album: { kind: belongs_to, collection: albums, on_delete: cascade }
      folder: { kind: belongs_to, collection: folders, on_delete: cascade }
      original: { kind: belongs_to, collection: files, on_delete: cascade }
      note: { kind: belongs_to, collection: notes, on_delete: set_null }
    access: { list: true, read: true, delete: true }
  albums:
    relations: { person: { kind: belongs_to, collection: users, on_delete: cascade } }
    access: { read: true, create: true, delete: true }
  folders:
    relations: { parent: { kind: belongs_to, collection: folders, on_delete: cascade } }
    access: { read: true, create: true, update: true, delete: true }
  notes:
    access: { read: true, create: true, delete: true }
  remarks:
    relations: { file: { kind: belongs_to, collection: files, on_delete: cascade } }
    access: { read: true, create: true }
  seals:
    relations: { file: { kind: belongs_to, collection: files, required: true } }
    access: { read: true, create: true }
`;

const present = await hasPostgres();
afterAll(stopPostgres);

describe.each(KINDS.filter((kind) => kind === 'embedded' || present))('%s', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let told: string[] = [];
  /** What a file hangs on, by the names of its relations. */
  const file = async (on: Readonly<Record<string, string>> = {}): Promise<string> => {
    const bytes = { name: 'a.txt', content_type: 'text/plain', size: 3, sha256: 'a'.repeat(64), owner: ann.id };
    return (await db.transaction((tx) => world.records.insertSystem(tx, 'files', { ...bytes, ...on }))).id;
  };
  const make = async (collection: string, data: object = {}): Promise<string> =>
    (await ann.create(collection, data)).id;
  const whatGoes = async (collection: string, id: string): Promise<readonly string[]> => {
    told = [];
    await ann.remove(collection, id);
    return told.toSorted();
  };
  const exists = async (id: string): Promise<boolean> =>
    (await world.records.findSystem(db, 'files', sql`t.id = ${param('uuid', id)}`)).length > 0;

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA, { onFilesRemoved: async (ids) => void told.push(...ids) });
    ann = await world.user('ann@example.org');
  }, 60_000);
  afterAll(() => db?.close());

  it('tells of the file itself, and of those that hang on it', async () => {
    const original = await file();
    const copies = [await file({ original }), await file({ original })];
    const ofCopy = await file({ original: copies[0]! });
    await file();
    expect(await whatGoes('files', original)).toEqual([original, ...copies, ofCopy].toSorted());
    for (const id of [original, ...copies, ofCopy]) expect(await exists(id)).toBe(false);
  });

  it('tells of files that go with a record, and with what goes with it', async () => {
    const bob = await world.user('bob@example.org');
    const album = await make('albums', { person: bob.id });
    const [one, other] = [await file({ album }), await file({ album })];
    const elsewhere = await file({ album: await make('albums', { person: ann.id }) });
    expect(await whatGoes('users', bob.id)).toEqual([one, other].toSorted());
    expect([await exists(one), await exists(other), await exists(elsewhere)]).toEqual([false, false, true]);
  });

  it('comes to an end where records hang on one another in a ring', async () => {
    const root = await make('folders');
    const child = await make('folders', { parent: root });
    await ann.update('folders', root, { parent: child });
    const files = [await file({ folder: root }), await file({ folder: child })];
    expect(await whatGoes('folders', child)).toEqual(files.toSorted());
    expect(await whatGoes('folders', await make('folders'))).toEqual([]);
  });

  it('tells of a file once that hangs on two records that go', async () => {
    const folder = await make('folders');
    const original = await file({ folder });
    const copy = await file({ folder, original });
    expect(await whatGoes('folders', folder)).toEqual([original, copy].toSorted());
  });

  it('leaves out what only lets go', async () => {
    const note = await make('notes');
    const kept = await file({ note });
    expect(await whatGoes('notes', note)).toEqual([]);
    expect(await exists(kept)).toBe(true);
  });

  it('tells of nothing that was refused and rolled back', async () => {
    const album = await make('albums');
    const sealed = await file({ album });
    const other = await file({ album });
    await ann.create('seals', { file: sealed });
    told = [];
    expect(await refusal(ann.remove('albums', album))).toBe('still_referenced');
    expect(await refusal(ann.remove('albums', album, '"another"'))).toBe('changed');
    expect([told, await exists(sealed), await exists(other)]).toEqual([[], true, true]);
  });

  it('tells of files that were added while the delete waited', async () => {
    const album = await make('albums');
    const first = await file({ album });
    const added = Promise.withResolvers<string>();
    const goOn = Promise.withResolvers<void>();
    const adding = db.transaction(async (tx) => {
      const values = { name: 'b', content_type: 'text/plain', size: 1, sha256: 'b'.repeat(64), owner: ann.id, album };
      added.resolve((await world.records.insertSystem(tx, 'files', values)).id);
      await goOn.promise;
    });
    const second = await added.promise;
    const removing = whatGoes('albums', album);
    setTimeout(goOn.resolve, 100);
    await adding;
    expect(await removing).toEqual([first, second].toSorted());
    // And whoever comes later finds nothing to hang on.
    await expect(file({ album })).rejects.toMatchObject({ kind: 'foreign_key' });
  });
});
