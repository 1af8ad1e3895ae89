/** Files that go with other records: their bytes, their variants and what they took of a quota go at once, and nothing goes where the delete was refused. */
import sharp from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';
import { param, sql } from '../../src/sql.ts';
import { outcomeOf } from '../support/records.ts';
import type { TestService, User } from '../support/service.ts';
import { findRecords } from '../support/system-records.ts';
import { bytesOf, upload } from './sending.ts';

/** The collections of this suite; it also needs a width of 16, and a quota of 10 KiB for all but admins. */
export const GOING = {
  users: `
  users: { access: { list: true, read: true, delete: [{ roles: [admin] }] } }`,
  files: `
      album: { kind: belongs_to, collection: albums, on_delete: cascade }
      of: { kind: belongs_to, collection: users, on_delete: cascade }
      original: { kind: belongs_to, collection: files, on_delete: cascade }
      mentioned: { kind: belongs_to, collection: albums, on_delete: set_null }`,
  albums: `
  albums:
    fields: { name: string }
    relations:
      person: { kind: belongs_to, collection: users, on_delete: cascade }
      parent: { kind: belongs_to, collection: albums, on_delete: cascade }
    access: { list: true, read: true, create: true, update: true, delete: true }`,
};

/** `bytesFor`: places of everything that belongs to a file. */
export function describeGoing(service: TestService, bytesFor: (id: string) => readonly string[]): void {
  describe('files that go with other records', () => goingOf(service, bytesFor));
}

function goingOf(service: TestService, bytesFor: (id: string) => readonly string[]): void {
  let admin: User;
  beforeAll(async () => {
    admin = await service.user('admin');
  });
  const make = async (data: object, form: object = {}, user = admin): Promise<string> => {
    const { status, body } = await upload(user.client, { bytes: Buffer.alloc(1000, 97), data, ...form });
    expect(status).toBe(201);
    return body.data.id;
  };
  const album = async (data: object = {}): Promise<string> =>
    (await admin.client.post('/api/albums', { data })).body.data.id;
  const remove = async (collection: string, id: string): Promise<void> =>
    expect((await admin.client.delete(`/api/${collection}/${id}`)).status).toBe(204);
  /** Tests for bytes of each file, which can be read exactly if they exist. */
  const kept = async (...ids: readonly string[]): Promise<readonly boolean[]> => {
    const found = ids.map((id) => bytesFor(id).length > 0);
    const read = await Promise.all(ids.map((id) => bytesOf(admin.client, `/api/files/${id}/content`)));
    expect(read.map(({ status }) => status === 200)).toEqual(found);
    return found;
  };

  test('a deleted record takes its bytes and variants with the answer, and no others', async () => {
    const outer = await album();
    const inner = await album({ parent: outer });
    const picture = await sharp({ create: { width: 40, height: 20, channels: 3, background: '#a04020' } })
      .png()
      .toBuffer();
    const image = await make({ album: inner }, { bytes: picture, type: 'image/png' });
    expect((await bytesOf(admin.client, `/api/files/${image}/content?width=16`)).status).toBe(200);
    const thumbnail = await make({ original: image });
    const direct = await make({ album: outer });
    const other = await make({ album: await album() });
    const lettingGo = await make({ mentioned: outer });
    expect(bytesFor(image).length).toBe(2);
    await remove('albums', outer);
    expect(bytesFor(image)).toEqual([]);
    expect(await kept(image, thumbnail, direct, other, lettingGo)).toEqual([false, false, false, true, true]);
  });

  test('a deleted user takes the files', async () => {
    const bob = await service.user('member');
    const ofBob = await make({ of: bob.id });
    const inAlbum = await make({ album: await album({ person: bob.id }) });
    await remove('users', bob.id);
    expect(await kept(ofBob, inAlbum)).toEqual([false, false]);
  });

  test('a delete takes many files at once', async () => {
    const full = await album();
    const ids = await Promise.all(Array.from({ length: 40 }, () => make({ album: full })));
    expect(ids.flatMap(bytesFor).length).toBe(40);
    await remove('albums', full);
    expect(ids.flatMap(bytesFor)).toEqual([]);
  });

  test('a delete that is refused and rolled back takes nothing', async () => {
    const held = await album();
    const ids = [await make({ album: held }), await make({ album: held })];
    const strict = (await admin.client.post('/api/strict', { data: { file: ids[1] } })).body.data.id;
    expect(outcomeOf(await admin.client.delete(`/api/albums/${held}`))).toEqual([409, 'still_referenced']);
    expect(outcomeOf(await admin.client.delete(`/api/albums/${held}`, { 'If-Match': '"x"' }))).toEqual([
      412,
      'changed',
    ]);
    expect(await kept(...ids)).toEqual([true, true]);
    await remove('strict', strict);
    await remove('albums', held);
    expect(await kept(...ids)).toEqual([false, false]);
  });

  test('the quota of deleted files is free again', async () => {
    const cat = await service.user('member');
    const full = await album();
    const five = { bytes: Buffer.alloc(5 * 1024, 97) };
    const isFull = async () =>
      expect(outcomeOf(await upload(cat.client, { bytes: 'x' }))).toEqual([413, 'too_large', '/file quota_exceeded']);
    const usage = async (user: typeof cat) => (await user.client.get('/api/_uploads')).body.data;
    expect(await usage(cat)).toMatchObject({ used: 0, quota: 10 * 1024 });
    for (let i = 0; i < 2; i++) await make({ album: full }, five, cat);
    await isFull();
    expect(await usage(cat)).toMatchObject({ used: 10 * 1024, quota: 10 * 1024 });
    // Files of others do not count.
    expect((await usage(await service.user('member'))).used).toBe(0);
    expect((await service.anonymous.get('/api/_uploads')).status).toBe(401);
    await remove('albums', full);
    expect((await usage(cat)).used).toBe(0);
    for (let i = 0; i < 2; i++) await make({}, five, cat);
    await isFull();
  });

  test('a cascade takes records in a ring, and a file that references two of them', async () => {
    const one = await album();
    const other = await album({ parent: one });
    await admin.client.patch(`/api/albums/${one}`, { data: { parent: other } });
    const first = await make({ album: one });
    const second = await make({ album: other, original: first });
    await remove('albums', other);
    expect(await kept(first, second)).toEqual([false, false]);
  });

  test('a delete takes a file that was added while it waited', async () => {
    const { db } = service.app;
    // The one that is deleted is not the one that is being written to.
    const outer = await album();
    const busy = await album({ parent: outer });
    const early = await make({ album: busy });
    // Its bytes are there, as those of an upload are before its record.
    const late = await make({});
    const added = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const adding = db.transaction(async (tx) => {
      await tx.run(sql`UPDATE "files" SET album_id = ${param('uuid', busy)} WHERE id = ${param('uuid', late)}`);
      added.resolve();
      await goOn.promise;
    });
    await added.promise;
    const removing = remove('albums', outer);
    setTimeout(goOn.resolve, 100);
    await Promise.all([adding, removing]);
    expect(await findRecords(service.app, 'files', sql`t.album_id = ${param('uuid', busy)}`)).toEqual([]);
    expect(await kept(early, late)).toEqual([false, false]);
  });
}
