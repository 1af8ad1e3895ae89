// @module-tag long
/** `redirects=true`: callers who may read a file get its bytes from the bucket, at a signed address; others get no address. */
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { CREDENTIALS, ProtocolServer } from '../support/s3/protocol-server.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { expectHidden } from './hidden.ts';
import { bytesOf, upload } from './sending.ts';

const SCHEMA = `
roles: { member: {} }
collections:
  files:
    fields: { shared: { type: bool, required: true, default: false } }
    access:
      list: '@record.owner = @request.auth.id or @record.shared'
      read: '@record.owner = @request.auth.id or @record.shared'
      create: '@record.owner = @request.auth.id'
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
uploads: { images: { widths: [64] } }
`;
Object.assign(process.env, CREDENTIALS);
const bucket = await ProtocolServer.start();
afterAll(() => bucket.close());

describeOnOne(
  'redirects to a bucket',
  (service) => {
    const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 256));
    let ann: User;
    let bob: User;
    let id: string;
    let path: string;
    const make = async (form: Partial<Parameters<typeof upload>[1]> = {}): Promise<string> =>
      (await upload(ann.client, { bytes: BYTES, name: 'ä.html', type: 'text/html', ...form })).body.data.id;
    /** The address that the answer redirects to; it gives access to the bytes. */
    const addressOf = async (from: string, headers = {}): Promise<string> => {
      const answer = await bytesOf(ann.client, from, headers);
      expect([answer.status, answer.bytes.length, answer.headers.get('cache-control')]).toEqual([
        302,
        0,
        'private, no-store',
      ]);
      return answer.headers.get('location')!;
    };
    beforeAll(async () => {
      ann = await service.user('member');
      bob = await service.user('member');
      id = await make();
      path = `/api/files/${id}/content`;
    });

    test('a redirect leads to the bytes, under the type and the name of the record', async () => {
      const address = await addressOf(path);
      expect(address.startsWith(`${bucket.endpoint}/files/some/folder/`)).toBe(true);
      // Without any credential of this service.
      const response = await fetch(address);
      expect([response.status, Buffer.from(await response.arrayBuffer()).equals(BYTES)]).toEqual([200, true]);
      expect(
        ['content-type', 'content-disposition', 'cache-control'].map((name) => response.headers.get(name)),
      ).toEqual(['text/html', `attachment; filename="_.html"; filename*=UTF-8''%C3%A4.html`, 'private, no-store']);
      await ann.client.patch(`/api/files/${id}`, { data: { name: 'b.html' } });
      expect((await fetch(await addressOf(path))).headers.get('content-disposition')).toBe(
        `attachment; filename="b.html"; filename*=UTF-8''b.html`,
      );
    });

    test('clients follow a redirect with their ranges', async () => {
      const follow = (headers: Record<string, string>) =>
        fetch(service.url + path, { headers: { ...ann.client.headers, ...headers } });
      const whole = await follow({});
      expect([whole.status, whole.redirected, Buffer.from(await whole.arrayBuffer()).equals(BYTES)]).toEqual([
        200,
        true,
        true,
      ]);
      const part = await follow({ Range: 'bytes=10-19' });
      expect([part.status, part.headers.get('content-range'), part.headers.get('content-type')]).toEqual([
        206,
        'bytes 10-19/1000',
        'text/html',
      ]);
      expect(Buffer.from(await part.arrayBuffer()).equals(BYTES.subarray(10, 20))).toBe(true);
      expect((await follow({ Range: 'bytes=1000-' })).status).toBe(416);
    });

    test('a redirect works for a minute, for one object, as it was signed', async () => {
      const address = new URL(await addressOf(path));
      expect(address.searchParams.get('X-Amz-Expires')).toBe('60');
      const other = await make({ bytes: 'other' });
      const forged = [
        address.href.replace(id, other),
        address.href.replace('attachment', 'inline'),
        address.href.replace(/X-Amz-Expires=60/, 'X-Amz-Expires=6000'),
        address.href.replace(/X-Amz-Signature=../, 'X-Amz-Signature=zz'),
      ];
      for (const wrong of forged) {
        expect(wrong).not.toBe(address.href);
        expect((await fetch(wrong)).status).toBe(403);
      }
    });

    test('a redirect leads to variants too', async () => {
      const bytes = await sharp({ create: { width: 100, height: 50, channels: 3, background: '#a04020' } })
        .avif()
        .toBuffer();
      const image = await make({ bytes, name: 'p.avif', type: 'image/avif' });
      const response = await fetch(await addressOf(`/api/files/${image}/content?width=64`));
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/webp']);
      expect((await sharp(Buffer.from(await response.arrayBuffer())).metadata()).width).toBe(64);
      expect(response.headers.get('content-disposition')).toMatch(/^inline; filename="p.avif"/);
    });

    test('a valid link gives a redirect', async () => {
      const { url } = (await ann.client.post(`/api/files/${id}/link`)).body;
      const response = await fetch(url);
      expect([response.redirected, Buffer.from(await response.arrayBuffer()).equals(BYTES)]).toEqual([true, true]);
      expect((await fetch(`${url}x`, { redirect: 'manual' })).status).toBe(401);
    });

    test('HEAD gives no redirect, nor does content that the client has already', async () => {
      const head = await ann.client.send('HEAD', path);
      expect([head.status, head.headers.get('location'), head.headers.get('content-length')]).toEqual([
        200,
        null,
        '1000',
      ]);
      const etag = head.headers.get('etag')!;
      const same = await bytesOf(ann.client, path, { 'If-None-Match': etag });
      expect([same.status, same.headers.get('location')]).toEqual([304, null]);
    });

    test('callers who may not read get the answers of a missing file, and no redirect', async () => {
      await expectHidden(bob.client, id);
      expect((await service.anonymous.get(path)).status).toBe(401);
      await ann.client.patch(`/api/files/${id}`, { data: { shared: true } });
      expect((await bytesOf(bob.client, path)).status).toBe(302);
      const { url } = (await bob.client.post(`/api/files/${id}/link`)).body;
      await ann.client.patch(`/api/files/${id}`, { data: { shared: false } });
      await expectHidden(bob.client, id);
      const gone = await fetch(url, { redirect: 'manual' });
      expect([gone.status, gone.headers.get('location')]).toEqual([404, null]);
    });

    test('a redirect ends with the file', async () => {
      const short = await make();
      const address = await addressOf(`/api/files/${short}/content`);
      await ann.client.delete(`/api/files/${short}`);
      expect((await fetch(address)).status).toBe(404);
      expect(outcomeOf(await ann.client.get(`/api/files/${short}/content`))).toEqual([404, 'not_found']);
    });
  },
  { schema: SCHEMA, env: { BYLAW_FILES: bucket.place('&redirects=true') } },
);
