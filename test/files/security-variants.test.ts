// @module-tag long
/** S7: sizes of images escaped the quota, and two images stopped everybody else's. */
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { beforeAll, expect, it } from 'vitest';
import { describeOnOne, type User } from '../support/service.ts';
import { bytesOf, temporaryFolder, upload } from './sending.ts';

const FOLDER = temporaryFolder();
const SCHEMA = `
roles: [member]
uploads: { quota: { default: 1MiB }, images: { widths: [16, 64, 512, 2048], heights: [16, 64, 512, 2048] } }
`;
const noise = (width: number, height: number): Promise<Buffer> =>
  sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();

const storedFor = (id: string): readonly number[] =>
  readdirSync(FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.startsWith(id))
    .map(({ parentPath, name }) => statSync(join(parentPath, name)).size);
const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0);

describeOnOne(
  'S7: sizes of images',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user('member');
    });
    const make = async (bytes: Buffer, type: string): Promise<string> =>
      (await upload(ann.client, { bytes, type, name: 'p' })).body.data.id;
    const render = async (id: string, query: string) => {
      const { status, bytes } = await bytesOf(ann.client, `/api/files/${id}/content?${query}`);
      const { width = 0, height = 0 } = await sharp(bytes).metadata();
      return { status, bytes, width, height };
    };

    it.each([
      ['width=2048', 48, 24],
      ['height=512&fit=inside', 48, 24],
      ['width=2048&height=2048', 24, 24],
      ['width=2048&height=512', 48, 12],
      ['width=2048&height=2048&fit=inside', 48, 24],
      ['width=2048&height=2048&fit=contain', 48, 48],
      ['width=16&height=64&fit=cover', 6, 24],
      ['width=16&height=16&fit=cover', 16, 16],
      ['width=16&height=64&fit=contain', 16, 64],
    ])('%s of 48 by 24 pixels is not enlarged, and has the shape that was asked for', async (query, width, height) => {
      expect(await render(await make(await noise(48, 24), 'image/png'), query)).toMatchObject({
        status: 200,
        width,
        height,
      });
    });

    it('all kept sizes of an image take no more bytes than the image', async () => {
      const bytes = await noise(48, 48);
      const id = await make(bytes, 'image/png');
      const lengths = ['', '16', '64', '512', '2048'];
      const sizes = lengths
        .flatMap((width) => lengths.map((height) => [width && `width=${width}`, height && `height=${height}`]))
        .map((parts) => parts.filter((part) => part !== '').join('&'))
        .filter((query) => query !== '');
      const statuses = new Set<number>();
      for (const query of sizes) statuses.add((await render(id, query)).status);
      expect([sizes.length, [...statuses]]).toEqual([24, [200]]);
      const [kept, whole] = [sum(storedFor(id)), bytes.length];
      expect([kept > whole, kept <= 2 * whole]).toEqual([true, true]);
    });

    it('a size that takes more bytes than the image is sent, in ranges and to HEAD too, and not kept', async () => {
      // The rows repeat, so the PNG is small until scaling blends them.
      const row = randomBytes(512 * 3);
      const rows = Buffer.concat(
        Array.from({ length: 512 }, (_, i) => (i % 2 === 0 ? row : Buffer.from(row).reverse())),
      );
      const bytes = await sharp(rows, { raw: { width: 512, height: 512, channels: 3 } })
        .webp({ quality: 1 })
        .toBuffer();
      const id = await make(bytes, 'image/webp');
      const path = `/api/files/${id}/content?width=512`;
      const whole = await bytesOf(ann.client, path);
      expect([whole.status, whole.bytes.length > bytes.length, storedFor(id)]).toEqual([200, true, [bytes.length]]);
      const part = await bytesOf(ann.client, path, { Range: 'bytes=100-199' });
      expect([part.status, part.bytes.equals(whole.bytes.subarray(100, 200))]).toEqual([206, true]);
      const head = await ann.client.send('HEAD', path);
      expect([head.status, head.headers.get('content-length')]).toEqual([200, String(whole.bytes.length)]);
      const etag = whole.headers.get('etag')!;
      expect((await bytesOf(ann.client, path, { 'If-None-Match': etag })).status).toBe(304);
    });

    it('a picture that its camera held sideways keeps its shape', async () => {
      const bytes = await sharp(await noise(48, 24))
        .jpeg()
        .withMetadata({ orientation: 6 })
        .toBuffer();
      const id = await make(bytes, 'image/jpeg');
      expect(await render(id, 'width=2048')).toMatchObject({ status: 200, width: 24, height: 48 });
    });
  },
  { schema: SCHEMA, env: { BYLAW_DATA: FOLDER } },
);
