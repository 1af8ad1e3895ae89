/** Files that go with other records: their bytes, their variants and what they took of a quota go at once, and nothing goes where the delete was refused. */
import { readdirSync } from 'node:fs';
import sharp from 'sharp';
import { beforeAll, expect, test } from 'vitest';
import { faults } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';
import { bytesOf, temporaryFolder, upload } from './sending.ts';

const FOLDER = temporaryFolder();
const ALL = 'access: { list: true, read: true, create: true, update: true, delete: true }';
const SCHEMA = `
roles: { member: {}, admin: {} }
collections:
  users:
    access: { list: true, read: true, delete: [{ roles: [admin] }] }
  files:
    relations:
      album: { kind: belongs_to, collection: albums, on_delete: cascade }
      of: { kind: belongs_to, collection: users, on_delete: cascade }
      thumbnail_of: { kind: belongs_to, collection: files, on_delete: cascade }
  albums:
    relations:
      person: { kind: belongs_to, collection: users, on_delete: cascade }
      parent: { kind: belongs_to, collection: albums, on_delete: cascade }
    ${ALL}
  seals:
    relations: { file: { kind: belongs_to, collection: files, required: true } }
    ${ALL}
uploads: { quota: { default: 3000, admin: 10MiB }, images: { widths: [16] } }
`;
/** Places of everything that belongs to these files. */
const bytesFor = (...ids: readonly string[]): readonly string[] =>
  readdirSync(FOLDER, { recursive: true })
    .map(String)
    .filter((place) => ids.some((id) => place.includes(id)));

describeOnBoth(
  'files that go with other records',
  (service) => {
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
    const isGone = async (id: string): Promise<boolean> =>
      bytesFor(id).length === 0 && (await admin.client.get(`/api/files/${id}/content`)).status === 404;

    test('a record: bytes and variants are gone with the answer, and those of no other', async () => {
      const outer = await album();
      const inner = await album({ parent: outer });
      const picture = await sharp({ create: { width: 40, height: 20, channels: 3, background: '#a04020' } })
        .png()
        .toBuffer();
      const image = await make({ album: inner }, { bytes: picture, type: 'image/png' });
      expect((await bytesOf(admin.client, `/api/files/${image}/content?width=16`)).status).toBe(200);
      const thumbnail = await make({ thumbnail_of: image });
      const direct = await make({ album: outer });
      const other = await make({ album: await album() });
      expect(bytesFor(image, thumbnail, direct, other).length).toBe(5);
      expect((await admin.client.delete(`/api/albums/${outer}`)).status).toBe(204);
      expect([await isGone(image), await isGone(thumbnail), await isGone(direct)]).toEqual([true, true, true]);
      expect(bytesFor(other).length).toBe(1);
    });

    test('a user', async () => {
      const bob = await service.user('member');
      const ofBob = await make({ of: bob.id });
      const inAlbum = await make({ album: await album({ person: bob.id }) });
      expect((await admin.client.delete(`/api/users/${bob.id}`)).status).toBe(204);
      expect([await isGone(ofBob), await isGone(inAlbum)]).toEqual([true, true]);
    });

    test('many at once', async () => {
      const full = await album();
      const ids = await Promise.all(Array.from({ length: 40 }, () => make({ album: full })));
      expect(bytesFor(...ids).length).toBe(40);
      expect((await admin.client.delete(`/api/albums/${full}`)).status).toBe(204);
      expect(bytesFor(...ids)).toEqual([]);
    });

    test('nothing goes where the delete is refused and rolled back', async () => {
      const kept = await album();
      const ids = [await make({ album: kept }), await make({ album: kept })];
      const seal = (await admin.client.post('/api/seals', { data: { file: ids[1] } })).body.data.id;
      expect(faults(await admin.client.delete(`/api/albums/${kept}`))).toEqual([409, 'still_referenced']);
      expect(faults(await admin.client.delete(`/api/albums/${kept}`, { 'If-Match': '"x"' }))).toEqual([412, 'changed']);
      expect(bytesFor(...ids).length).toBe(2);
      for (const id of ids) expect((await bytesOf(admin.client, `/api/files/${id}/content`)).bytes.length).toBe(1000);
      await admin.client.delete(`/api/seals/${seal}`);
      expect((await admin.client.delete(`/api/albums/${kept}`)).status).toBe(204);
      expect(bytesFor(...ids)).toEqual([]);
    });

    test('what they took of a quota is free again', async () => {
      const cat = await service.user('member');
      const full = await album();
      for (let i = 0; i < 3; i++) await make({ album: full }, {}, cat);
      expect(faults(await upload(cat.client, { bytes: 'x' }))).toEqual([413, 'too_large', '/file quota_exceeded']);
      expect((await admin.client.delete(`/api/albums/${full}`)).status).toBe(204);
      for (let i = 0; i < 3; i++) await make({}, {}, cat);
      expect(faults(await upload(cat.client, { bytes: 'x' }))).toEqual([413, 'too_large', '/file quota_exceeded']);
    });
  },
  { schema: SCHEMA, env: { BYLAW_DATA: FOLDER } },
);
