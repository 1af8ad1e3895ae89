// @module-tag long
/** GET and HEAD of the content: ranges, tags, headers, links; and one 404 for callers who may not read. */
import { randomBytes } from 'node:crypto';
import { globSync, readdirSync, readlinkSync, truncateSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { describeOnOne, type User } from '../support/service.ts';
import { describeDownloads } from './downloads.ts';
import { expectHidden } from './hidden.ts';
import { bytesOf, temporaryFolder, upload } from './sending.ts';

const SCHEMA = `
roles: { member: {}, admin: {} }
collections:
  files:
    fields: { note: string, shared: { type: bool, required: true, default: false } }
    access:
      list: '@record.owner = @request.auth.id or @record.shared'
      read: '@record.owner = @request.auth.id or @record.shared'
      create: '@record.owner = @request.auth.id'
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
  notes:
    fields: { text: string }
    relations: { file: { kind: belongs_to, collection: files } }
    access: { list: true, read: true, create: true, update: true, delete: true }
`;
const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 256));
const FOLDER = temporaryFolder();

describeOnOne(
  'content',
  (service) => {
    let ann: User;
    let bob: User;
    let id: string;
    let path: string;
    const make = async (form: Parameters<typeof upload>[1], user = ann): Promise<string> =>
      (await upload(user.client, form)).body.data.id;
    beforeAll(async () => {
      ann = await service.user('member');
      bob = await service.user('member');
      id = await make({ bytes: BYTES, name: 'a.bin', type: 'application/octet-stream' });
      path = `/api/files/${id}/content`;
    });

    test('content comes whole, with every header that keeps it harmless', async () => {
      const { status, headers, bytes } = await bytesOf(ann.client, path);
      expect([status, bytes.equals(BYTES)]).toEqual([200, true]);
      const names = [
        'content-type',
        'content-length',
        'accept-ranges',
        'cache-control',
        'content-disposition',
        'content-security-policy',
        'x-content-type-options',
      ];
      expect(names.map((name) => headers.get(name))).toEqual([
        'application/octet-stream',
        '1000',
        'bytes',
        'private, no-cache',
        `attachment; filename="a.bin"; filename*=UTF-8''a.bin`,
        "default-src 'none'; frame-ancestors 'none'; sandbox",
        'nosniff',
      ]);
      expect(headers.get('etag')).toBe(`"${(await ann.client.get(`/api/files/${id}`)).body.data.sha256}"`);
    });

    test('HEAD sends the same headers, and no bytes', async () => {
      const head = await ann.client.send('HEAD', path);
      const get = await bytesOf(ann.client, path);
      const own = (headers: Headers) =>
        Object.fromEntries(
          [...headers].filter(([name]) => !['date', 'x-request-id', 'connection', 'keep-alive'].includes(name)),
        );
      expect([head.status, head.text, own(head.headers)]).toEqual([200, '', own(get.headers)]);
    });

    test('If-None-Match gives 304 before a range counts', async () => {
      const etag = (await bytesOf(ann.client, path)).headers.get('etag')!;
      for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const { status, bytes, headers } = await bytesOf(ann.client, path, {
          'If-None-Match': tag,
          Range: 'bytes=0-1',
        });
        expect([status, bytes.length, headers.get('etag')]).toEqual([304, 0, etag]);
      }
      expect((await bytesOf(ann.client, path, { 'If-None-Match': '"x"' })).status).toBe(200);
    });

    describe('ranges', () => {
      test.each([
        ['bytes=0-0', 0, 0],
        ['bytes=0-9', 0, 9],
        ['bytes=990-', 990, 999],
        ['bytes=-10', 990, 999],
        ['bytes=990-5000', 990, 999],
        ['bytes=-5000', 0, 999],
        ['bytes=0-5,3-9', 0, 9],
        ['bytes=5-9, 0-4', 0, 9],
        ['BYTES=1-2', 1, 2],
        ['bytes=0-1,2000-', 0, 1],
      ])('the range %s gives one part', async (range, start, end) => {
        const { status, headers, bytes } = await bytesOf(ann.client, path, { Range: range });
        expect([status, headers.get('content-range'), headers.get('content-length')]).toEqual([
          206,
          `bytes ${start}-${end}/1000`,
          String(end - start + 1),
        ]);
        expect(bytes.equals(BYTES.subarray(start, end + 1))).toBe(true);
      });

      test.each([
        ['reversed', 'bytes=9-5'],
        ['one of two reversed', 'bytes=0-1,9-5'],
        ['another unit', 'lines=1-2'],
        ['nonsense', 'bytes=a-b'],
        ['nothing', 'bytes='],
        ['hundreds', `bytes=${Array.from({ length: 400 }, (_, i) => `${i * 2}-${i * 2}`).join(',')}`],
        ['a sign', 'bytes=+1-2'],
      ])('the header %s gives the whole content', async (_, range) => {
        const { status, headers, bytes } = await bytesOf(ann.client, path, { Range: range });
        expect([status, headers.get('content-range'), bytes.length]).toEqual([200, null, 1000]);
      });

      test('a header full of ranges gives the whole content', async () => {
        const range = `bytes=${Array.from({ length: 3_900 }, () => '0-0').join(',')}`;
        expect(range.length).toBeGreaterThan(15_000);
        const { status, headers, bytes } = await bytesOf(ann.client, path, { Range: range });
        expect([status, headers.get('content-range'), bytes.equals(BYTES)]).toEqual([200, null, true]);
      });

      test('10,000 ranges do not fit into a header', async () => {
        const range = `bytes=${Array.from({ length: 10_000 }, () => '0-').join(',')}`;
        const { status, bytes } = await bytesOf(ann.client, path, { Range: range });
        // To headers of more than 16 KiB (RFC 6585).
        expect([status, JSON.parse(bytes.toString()).code]).toEqual([431, 'headers_too_large']);
        expect((await bytesOf(ann.client, path)).status).toBe(200);
      });

      test.each(['bytes=1000-', 'bytes=5000-6000', 'bytes=-0', 'bytes=1000-,2000-3000'])(
        'the range %s gives 416',
        async (range) => {
          const { status, headers, body } = await ann.client.get(path, { Range: range });
          expect([
            status,
            body.code,
            headers.get('content-range'),
            headers.get('content-disposition'),
            headers.get('etag'),
          ]).toEqual([416, 'range_not_satisfiable', 'bytes */1000', null, null]);
        },
      );

      test('several ranges give several parts', async () => {
        const { status, headers, bytes } = await bytesOf(ann.client, path, { Range: 'bytes=0-1,10-12,-2' });
        const boundary = /^multipart\/byteranges; boundary=([0-9a-f]+)$/.exec(headers.get('content-type')!)![1]!;
        const part = (start: number, end: number) =>
          Buffer.concat([
            Buffer.from(
              `\r\n--${boundary}\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes ${start}-${end}/1000\r\n\r\n`,
            ),
            BYTES.subarray(start, end + 1),
          ]);
        const expected = Buffer.concat([
          part(0, 1),
          part(10, 12),
          part(998, 999),
          Buffer.from(`\r\n--${boundary}--\r\n`),
        ]);
        expect([status, headers.get('content-length'), bytes.equals(expected)]).toEqual([
          206,
          String(expected.length),
          true,
        ]);
      });

      test('If-Range gives the range of the same content only', async () => {
        const etag = (await bytesOf(ann.client, path)).headers.get('etag')!;
        const statusFor = async (ifRange: string) =>
          (await bytesOf(ann.client, path, { Range: 'bytes=0-1', 'If-Range': ifRange })).status;
        expect([
          await statusFor(etag),
          await statusFor('"x"'),
          await statusFor(`W/${etag}`),
          await statusFor(new Date().toUTCString()),
        ]).toEqual([206, 200, 200, 200]);
      });

      test('an empty file has no range', async () => {
        const empty = await make({ bytes: '' });
        expect((await bytesOf(ann.client, `/api/files/${empty}/content`)).bytes.length).toBe(0);
        expect((await bytesOf(ann.client, `/api/files/${empty}/content`, { Range: 'bytes=0-' })).status).toBe(416);
      });
    });

    describeDownloads(service);

    describe('files that could run script', () => {
      const shown = async (bytes: string | Buffer, type: string): Promise<readonly (string | null | undefined)[]> => {
        const { headers } = await bytesOf(ann.client, `/api/files/${await make({ bytes, type, name: 'x' })}/content`);
        return [
          headers.get('content-type'),
          headers.get('content-disposition')?.split(';')[0],
          headers.get('x-content-type-options'),
        ];
      };
      test('an SVG with script, and HTML, become attachments', async () => {
        expect(
          await shown('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', 'image/svg+xml'),
        ).toEqual(['image/svg+xml', 'attachment', 'nosniff']);
        expect(await shown('<!doctype html><script>alert(1)</script>', 'text/html')).toEqual([
          'text/html',
          'attachment',
          'nosniff',
        ]);
        expect(await shown('%PDF-1.7 /JS (app.alert(1))', 'application/pdf')).toEqual([
          'application/pdf',
          'attachment',
          'nosniff',
        ]);
      });
      test('a JPEG that is HTML too is sent as a picture only', async () => {
        const polyglot = Buffer.concat([
          Buffer.from([0xff, 0xd8, 0xff, 0xfe, 0, 64]),
          Buffer.from('<html><script>alert(1)</script></html>'),
        ]);
        expect(await shown(polyglot, 'image/jpeg')).toEqual(['image/jpeg', 'inline', 'nosniff']);
        expect((await upload(ann.client, { bytes: polyglot, type: 'text/html' })).status).toBe(422);
      });
    });

    describe('large content', () => {
      const large = randomBytes(12 * 1024 * 1024 + 17);
      const makeLarge = () => make({ bytes: large, name: 'large.bin', type: 'application/octet-stream' });
      const ask = (of: string): Promise<IncomingMessage> =>
        new Promise((resolve, reject) =>
          get(`${service.url}/api/files/${of}/content`, { headers: ann.client.headers }, resolve).on('error', reject),
        );
      const read = async (of: string, pause: number): Promise<Buffer> => {
        const chunks: Buffer[] = [];
        for await (const chunk of await ask(of)) {
          chunks.push(chunk);
          if (pause > 0) await sleep(pause);
        }
        return Buffer.concat(chunks);
      };

      test('content reaches several clients at once, fast and slow', async () => {
        const made = await makeLarge();
        const came = await Promise.all([0, 0, 3, 7].map((pause) => read(made, pause)));
        expect(came.map((bytes) => bytes.equals(large))).toEqual([true, true, true, true]);
        const ends = { Range: `bytes=${large.length - 800_000}-` };
        const { status, bytes } = await bytesOf(ann.client, `/api/files/${made}/content`, ends);
        expect([status, bytes.equals(large.subarray(-800_000))]).toEqual([206, true]);
      });

      test('content is closed when its reader leaves, also after a second request', async () => {
        const made = await makeLarge();
        const countOpen = (): number => readdirSync('/proc/self/fd').filter((fd) => targetOf(fd).includes(made)).length;
        const { hostname, port } = new URL(service.url);
        const socket = connect({ host: hostname, port: Number(port) });
        const question = `GET /api/files/${made}/content HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ann.token}\r\n\r\n`;
        socket.write(question.repeat(3));
        for (const began = Date.now(); countOpen() < 3 && Date.now() - began < 5_000; ) await sleep(10);
        expect(countOpen()).toBe(3);
        socket.destroy();
        for (const began = Date.now(); countOpen() > 0 && Date.now() - began < 5_000; ) await sleep(10);
        expect(countOpen()).toBe(0);
        expect((await read(made, 0)).equals(large)).toBe(true);
      });

      test('content that lost its end on the disk ends with the connection', async () => {
        const made = await makeLarge();
        truncateSync(join(FOLDER, globSync(`**/${made}`, { cwd: FOLDER })[0]!), large.length - 1000);
        await expect(read(made, 0)).rejects.toThrow('aborted');
      });
    });

    describe('content for callers who may not read it', () => {
      test('metadata, content, HEAD, ranges, variants and links answer as for a missing file', async () => {
        const hidden = await make({ bytes: BYTES, type: 'application/octet-stream' });
        await expectHidden(bob.client, hidden);
        const note = (await ann.client.post('/api/notes', { data: { file: hidden } })).body.data.id;
        expect((await bob.client.get(`/api/notes/${note}?expand=file`)).body.data.expand).toEqual({ file: null });
        expect((await ann.client.get(`/api/notes/${note}?expand=file`)).body.data.expand.file.id).toBe(hidden);
      });

      test('a request without a credential gets 401', async () => {
        for (const rest of ['', '/content', '/content?width=64'])
          expect((await service.anonymous.get(`/api/files/${id}${rest}`)).status).toBe(401);
        expect((await service.anonymous.post(`/api/files/${id}/link`)).status).toBe(401);
      });
    });

    describe('links', () => {
      afterEach(() => vi.useRealTimers());
      const linkFor = async (user: User, of = id) => {
        const { status, headers, body } = await user.client.post(`/api/files/${of}/link`);
        expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
        return body as { url: string; expires_at: string };
      };
      const follow = (url: string, init: RequestInit = {}) =>
        fetch(url, init).then(async (response) => ({ status: response.status, text: await response.text() }));

      test('a link gives the content without a header, for a few minutes, and nothing else', async () => {
        const { url, expires_at } = await linkFor(ann);
        expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(300_000);
        expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(200_000);
        expect((await bytesOf(service.anonymous, url.slice(service.url.length))).bytes.equals(BYTES)).toBe(true);
        const token = url.split('token=')[1]!;
        const other = await make({ bytes: 'other' });
        expect((await follow(`${service.url}/api/files/${other}/content?token=${token}`)).status).toBe(401);
        expect((await follow(`${service.url}/api/files/${id}?token=${token}`)).status).toBe(401);
        expect((await follow(`${service.url}/api/files/${id}/link?token=${token}`, { method: 'POST' })).status).toBe(
          401,
        );
        for (const forged of [
          `${token}x`,
          `x${token}`,
          token.split('.')[0]!,
          '',
          '.',
          `${token.split('.')[0]}.${'A'.repeat(43)}`,
        ]) {
          expect((await follow(`${service.url}${path}?token=${forged}`)).status).toBe(401);
        }
      });

      test('a link expires to the second, and then answers like a false token', async () => {
        const { url, expires_at } = await linkFor(ann);
        const at = async (instant: number): Promise<readonly unknown[]> => {
          vi.useFakeTimers({ toFake: ['Date'], now: instant });
          const { status, headers, body } = await service.anonymous.get(url.slice(service.url.length));
          const head = await service.anonymous.send('HEAD', url.slice(service.url.length));
          return [status, head.status, headers.get('www-authenticate'), body?.code];
        };
        const expiry = Date.parse(expires_at);
        expect(await at(expiry - 1)).toEqual([200, 200, null, undefined]);
        expect(await at(expiry)).toEqual([401, 401, 'Bearer error="invalid_token"', 'invalid_token']);
        expect(await at(expiry + 3_600_000)).toEqual([401, 401, 'Bearer error="invalid_token"', 'invalid_token']);
        // The session that made it goes on, and makes another.
        vi.setSystemTime(expiry);
        expect((await follow((await linkFor(ann)).url)).status).toBe(200);
      });

      test('a link ends with the session of its creator, and with the right to read', async () => {
        const cat = await service.user('member');
        const shared = await make({ bytes: 'shared', data: { shared: true } });
        const { url } = await linkFor(cat, shared);
        expect((await follow(url)).text).toBe('shared');
        await ann.client.patch(`/api/files/${shared}`, { data: { shared: false } });
        expect((await follow(url)).status).toBe(404);
        await ann.client.patch(`/api/files/${shared}`, { data: { shared: true } });
        expect((await follow(url)).status).toBe(200);
        await cat.client.post('/api/auth/logout');
        expect((await follow(url)).status).toBe(401);
      });
    });
  },
  { schema: SCHEMA, env: { BYLAW_DATA: FOLDER } },
);

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
