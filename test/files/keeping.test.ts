// @module-tag long
/** Kept files and their time: quotas, relations to files, variants. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { describeGoing, GOING } from './going.ts';
import { describeHours } from './hours.ts';
import { bytesOf, temporaryFolder, upload } from './sending.ts';

const FOLDER = temporaryFolder();
const SCHEMA = `
roles: { member: {}, big: {}, admin: {} }
collections:${GOING.users}
  files:
    relations:${GOING.files}${GOING.albums}
  strict:
    relations: { file: { kind: belongs_to, collection: files, required: true } }
    access: { list: true, read: true, create: true, update: true, delete: true }
  loose:
    relations: { file: { kind: belongs_to, collection: files } }
    access: { list: true, read: true, create: true, update: true, delete: true }
  dependent:
    relations: { file: { kind: belongs_to, collection: files, on_delete: cascade } }
    access: { list: true, read: true, create: true, update: true, delete: true }
  linked:
    relations: { files: { kind: many_to_many, collection: files } }
    access: { list: true, read: true, create: true, update: true, delete: true }
uploads:
  max_size: 10MiB
  quota: { default: 10KiB, big: 200KiB, admin: 5MiB }
  images: { widths: [16, 32], heights: [16], max_pixels: 1000000 }
`;
const stored = (): readonly string[] =>
  readdirSync(FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'mark' && !entry.parentPath.endsWith('/trash'))
    .map(({ parentPath, name }) => join(parentPath, name));
const bytesFor = (id: string): readonly string[] => stored().filter((place) => place.includes(id));

describeOnOne(
  'kept files',
  (service) => {
    let admin: User;
    beforeAll(async () => {
      admin = await service.user('admin');
    });
    const make = async (form: Partial<Parameters<typeof upload>[1]> = {}): Promise<string> => {
      const { status, body, text } = await upload(admin.client, { bytes: 'x', ...form });
      expect([status, text]).toEqual([201, expect.stringContaining('"id"')]);
      return body.data.id;
    };

    describe('quotas', () => {
      test('50 concurrent uploads at the edge of a quota leave as many as fit', async () => {
        const user = await service.user('member');
        const bytes = Buffer.alloc(1000, 97);
        const answers = await Promise.all(Array.from({ length: 50 }, () => upload(user.client, { bytes })));
        const statuses = Map.groupBy(answers, ({ status }) => status);
        expect([...statuses].map(([status, of]) => [status, of.length]).toSorted()).toEqual([
          [201, 10],
          [413, 40],
        ]);
        expect(outcomeOf(statuses.get(413)![0]!)).toEqual([413, 'too_large', '/file quota_exceeded']);
        const { body } = await user.client.get('/api/files?limit=100', { Prefer: 'count=exact' });
        expect(body.page.total).toBe(10);
        for (const { id } of body.data) expect(bytesFor(id).length).toBe(1);
        expect(stored().filter((place) => place.includes('/incoming/'))).toEqual([]);
        // The quota of deleted files is free again.
        expect((await upload(user.client, { bytes })).status).toBe(413);
        await user.client.delete(`/api/files/${body.data[0].id}`);
        expect((await upload(user.client, { bytes })).status).toBe(201);
      });

      test('the largest quota of the roles counts', async () => {
        const user = await service.user('member', 'big');
        expect((await upload(user.client, { bytes: Buffer.alloc(190 * 1024, 97) })).status).toBe(201);
        expect((await upload(user.client, { bytes: Buffer.alloc(20 * 1024, 97) })).status).toBe(413);
      });
    });

    describe('relations', () => {
      test('a file that a record needs stays; other relations are nulled, or cascade', async () => {
        const file = await make();
        const strict = (await admin.client.post('/api/strict', { data: { file } })).body.data.id;
        const loose = (await admin.client.post('/api/loose', { data: { file } })).body.data.id;
        const dependent = (await admin.client.post('/api/dependent', { data: { file } })).body.data.id;
        const linked = (await admin.client.post('/api/linked', { data: { files: { set: [file] } } })).body.data.id;
        expect(outcomeOf(await admin.client.delete(`/api/files/${file}`))).toEqual([409, 'still_referenced']);
        expect((await bytesOf(admin.client, `/api/files/${file}/content`)).bytes.toString()).toBe('x');
        await admin.client.delete(`/api/strict/${strict}`);
        expect((await admin.client.delete(`/api/files/${file}`)).status).toBe(204);
        expect(bytesFor(file)).toEqual([]);
        expect((await admin.client.get(`/api/loose/${loose}`)).body.data.file).toBeNull();
        expect((await admin.client.get(`/api/dependent/${dependent}`)).status).toBe(404);
        expect((await admin.client.get(`/api/linked/${linked}?expand=files`)).body.data.expand).toEqual({ files: [] });
      });

      test('a deleted record leaves its files, unless the relation cascades', async () => {
        const file = await make();
        const album = (await admin.client.post('/api/albums', { data: { name: 'a' } })).body.data.id;
        const member = await make({ data: { album } });
        const loose = (await admin.client.post('/api/loose', { data: { file } })).body.data.id;
        await admin.client.delete(`/api/loose/${loose}`);
        expect((await admin.client.get(`/api/files/${file}`)).status).toBe(200);
        expect((await admin.client.delete(`/api/albums/${album}`)).status).toBe(204);
        expect((await admin.client.get(`/api/files/${member}`)).status).toBe(404);
        expect([bytesFor(file).length, bytesFor(member).length]).toEqual([1, 0]);
      });
    });

    describeGoing(service, bytesFor);
    describeHours(service);

    test('a sweep takes bytes without a record, and leaves young ones and those with a record', async () => {
      const kept = await make();
      const { storage } = service.app.files;
      const orphan = '01900000-0000-7000-8000-000000000001';
      const incoming = await storage.incoming(orphan);
      await incoming.write(Buffer.from('orphan'));
      await incoming.publish();
      const unfinished = await storage.incoming('01900000-0000-7000-8000-000000000002');
      expect(await service.app.files.sweep(60_000)).toBe(0);
      expect(await service.app.files.sweep(0)).toBe(2);
      expect([bytesFor(kept).length, bytesFor(orphan).length]).toEqual([1, 0]);
      expect(await service.app.files.sweep(0)).toBe(0);
      await unfinished.discard();
    });

    describe('variants', () => {
      const picture = (format: 'jpeg' | 'png' | 'webp' | 'gif' | 'avif', width = 100, height = 50): Promise<Buffer> =>
        sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } })
          .toFormat(format)
          .toBuffer();

      test.each([
        ['jpeg', 'jpeg'],
        ['png', 'png'],
        ['webp', 'webp'],
        ['gif', 'png'],
        ['avif', 'webp'],
      ] as const)(
        'a %s has variants in the sizes of the schema, as %s, rendered once and kept',
        async (format, made) => {
          const id = await make({ bytes: await picture(format), type: `image/${format}`, name: 'p' });
          const measured = async (query: string) => {
            const { status, bytes } = await bytesOf(admin.client, `/api/files/${id}/content?${query}`);
            const { width, height } = await sharp(bytes).metadata();
            return [status, width, height];
          };
          expect(await measured('width=32')).toEqual([200, 32, 16]);
          expect(await measured('width=16&height=16')).toEqual([200, 16, 16]);
          expect(await measured('width=32&height=16&fit=contain')).toEqual([200, 32, 16]);
          expect(await measured('width=16&height=16&fit=inside')).toEqual([200, 16, 8]);
          expect(bytesFor(id).length).toBe(5);
          const first = await bytesOf(admin.client, `/api/files/${id}/content?width=32`);
          expect(bytesFor(id).length).toBe(5);
          expect([first.headers.get('content-type'), (await sharp(first.bytes).metadata()).format]).toEqual([
            `image/${made}`,
            made,
          ]);
          const again = await bytesOf(admin.client, `/api/files/${id}/content?width=32`, {
            'If-None-Match': first.headers.get('etag')!,
          });
          expect(again.status).toBe(304);
          expect(first.headers.get('etag')).not.toBe(
            (await bytesOf(admin.client, `/api/files/${id}/content`)).headers.get('etag'),
          );
          await admin.client.delete(`/api/files/${id}`);
          expect(bytesFor(id)).toEqual([]);
        },
      );

      test('concurrent requests for a variant render it once', async () => {
        const id = await make({ bytes: await picture('png'), type: 'image/png' });
        const answers = await Promise.all(
          Array.from({ length: 12 }, () => bytesOf(admin.client, `/api/files/${id}/content?width=16`)),
        );
        expect(answers.every(({ status, bytes }) => status === 200 && bytes.equals(answers[0]!.bytes))).toBe(true);
        expect(bytesFor(id).length).toBe(2);
      });

      test.each([
        'width=17',
        'width=16&width=16',
        'height=32',
        'width=0',
        'width=1e1',
        'width=16&fit=fill',
        'fit=cover',
        'width=',
      ])('the size %s is rejected', async (query) => {
        const id = await make({ bytes: await picture('png', 4, 4), type: 'image/png' });
        expect((await admin.client.get(`/api/files/${id}/content?${query}`)).body.code).toBe('invalid_parameter');
      });

      test('a file that is not an image, is damaged, or is a decompression bomb gets 422', async () => {
        const bomb = await sharp({ create: { width: 5000, height: 5000, channels: 3, background: '#000' } })
          .png({ compressionLevel: 9 })
          .toBuffer();
        expect(bomb.length).toBeLessThan(200_000);
        const damaged = (await picture('png')).subarray(0, 60);
        for (const [bytes, type] of [
          [bomb, 'image/png'],
          [damaged, 'image/png'],
          ['text', 'text/plain'],
          ['<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml'],
        ] as const) {
          const id = await make({ bytes, type });
          expect(outcomeOf(await admin.client.get(`/api/files/${id}/content?width=16`))).toEqual([
            422,
            'validation_failed',
            'width not_resizable',
          ]);
          expect(bytesFor(id).length).toBe(1);
          expect((await bytesOf(admin.client, `/api/files/${id}/content`)).status).toBe(200);
        }
      });
    });
  },
  { schema: SCHEMA, env: { BYLAW_DATA: FOLDER } },
);
