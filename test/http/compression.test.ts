// @module-tag long
/** Compressed answers, as the bytes of the wire show them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeOnOne, type TestService, type User } from '../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
limits: { body: 2MiB, answer: 2MiB }
collections:
  posts:
    fields: { body: { type: string } }
    access: { view: true, create: true, update: true }
`;

const folder = mkdtempSync(join(tmpdir(), 'bylaw-compression-'));
writeFileSync(join(folder, 'index.html'), `<!doctype html>${'<p>shop</p>'.repeat(200)}`);
writeFileSync(join(folder, 'app.js'), 'export const shop = 1;\n'.repeat(20_000));
writeFileSync(join(folder, 'photo.png'), 'x'.repeat(4_000));
writeFileSync(join(folder, 'short.js'), 'export {};');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Sent {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
}

/** `fetch` would decompress the body. */
const send = (url: string, path: string, headers: Record<string, string> = {}): Promise<Sent> =>
  new Promise((resolve, reject) => {
    request(new URL(path, url), { headers }, (response) => {
      buffer(response).then(
        (bytes) => resolve({ status: response.statusCode!, headers: response.headers, bytes }),
        reject,
      );
    })
      .on('error', reject)
      .end();
  });

const decoded = ({ headers, bytes }: Sent): Buffer => {
  switch (headers['content-encoding']) {
    case 'br':
      return brotliDecompressSync(bytes);
    case 'gzip':
      return gunzipSync(bytes);
    default:
      return bytes;
  }
};

describeOnOne(
  'compression',
  (service: TestService) => {
    let ann: User;
    const get = (path: string, headers: Record<string, string> = {}): Promise<Sent> =>
      send(service.url, path, { ...ann.client.headers, ...headers });
    const made = async (body: string): Promise<string> =>
      (await ann.client.post('/api/posts', { data: { body } })).body.data.id;
    beforeAll(async () => {
      ann = await service.user();
    });

    describe('an answer of records', () => {
      // Chunks of the longest end inside of surrogate pairs.
      test.each([
        ['one write', 'é'.repeat(2_000)],
        ['chunks', '😀'.repeat(200_000)],
      ])('that takes %s has the same bytes after decompression', async (_, body) => {
        const id = await made(body);
        const plain = await get(`/api/posts/${id}`);
        const gzipped = await get(`/api/posts/${id}`, { 'Accept-Encoding': 'gzip, deflate, br' });
        expect([plain.headers['content-encoding'], gzipped.headers['content-encoding']]).toEqual([undefined, 'gzip']);
        expect(gzipped.headers.vary).toBe('Accept-Encoding');
        expect(gzipped.bytes.length).toBeLessThan(plain.bytes.length / 10);
        expect(decoded(gzipped).equals(plain.bytes)).toBe(true);
      });

      test.each([
        ['no Accept-Encoding', {}],
        ['another coding', { 'Accept-Encoding': 'br' }],
        ['a refusal of gzip', { 'Accept-Encoding': 'gzip;q=0, *' }],
        ['a preference for the plain form', { 'Accept-Encoding': 'identity, gzip;q=0.5' }],
      ])('%s gives the plain form', async (_, headers) => {
        await made('x'.repeat(2_000));
        expect((await get('/api/posts', headers)).headers['content-encoding']).toBeUndefined();
      });

      test('a page is compressed as a record is', async () => {
        await made('x'.repeat(2_000));
        const plain = await get('/api/posts?limit=1');
        const gzipped = await get('/api/posts?limit=1', { 'Accept-Encoding': 'gzip' });
        expect([gzipped.status, gzipped.headers['content-encoding'], gzipped.headers.etag]).toEqual([
          200,
          'gzip',
          undefined,
        ]);
        expect(decoded(gzipped).equals(plain.bytes)).toBe(true);
      });

      test('fewer than 1024 bytes stay plain', async () => {
        const id = await made('short');
        const sent = await get(`/api/posts/${id}`, { 'Accept-Encoding': 'gzip' });
        expect([sent.headers['content-encoding'], sent.bytes.length < 1_024]).toEqual([undefined, true]);
      });

      test('the entity tag names the coding, and serves both conditions', async () => {
        const id = await made('x'.repeat(2_000));
        const path = `/api/posts/${id}`;
        const plain = (await get(path)).headers.etag as string;
        const tag = (await get(path, { 'Accept-Encoding': 'gzip' })).headers.etag as string;
        expect(tag).toBe(plain.replace(/"$/, '-gzip"'));
        for (const known of [plain, tag, `W/${tag}`]) {
          expect((await get(path, { 'Accept-Encoding': 'gzip', 'If-None-Match': known })).status).toBe(304);
        }
        expect((await ann.client.patch(path, { data: { body: 'new' } }, { 'If-Match': tag })).status).toBe(200);
        expect((await ann.client.patch(path, { data: { body: 'newer' } }, { 'If-Match': tag })).status).toBe(412);
        expect((await get(path, { 'Accept-Encoding': 'gzip', 'If-None-Match': tag })).status).toBe(200);
      });
    });

    test('routes under /api/auth stay plain, where tokens and chosen text could share an answer', async () => {
      const { headers } = await ann.client.post(
        '/api/auth/login',
        { email: ann.email, password: ann.password },
        { 'Accept-Encoding': 'gzip, br', 'User-Agent': 'x'.repeat(400) },
      );
      expect(headers.get('content-encoding')).toBeNull();
      for (let i = 0; i < 4; i++)
        await ann.client.post('/api/auth/login', { email: ann.email, password: ann.password });
      const sessions = await get('/api/auth/sessions', { 'Accept-Encoding': 'gzip' });
      expect([sessions.bytes.length > 1_024, sessions.headers['content-encoding']]).toEqual([true, undefined]);
    });

    test('a page without a tag, and errors, are compressed as other answers are', async () => {
      const unknown = Array.from({ length: 40 }, (_, i) => `other${i}=1`).join('&');
      for (const [path, status, coding] of [
        ['/', 200, 'br'],
        [`/api/posts?${unknown}`, 400, 'gzip'],
        ['/api/posts?other=1', 400, undefined],
      ] as const) {
        const plain = await get(path, { 'X-Request-Id': 'x' });
        const sent = await get(path, { 'X-Request-Id': 'x', 'Accept-Encoding': 'gzip, br' });
        expect([path, sent.status, sent.headers['content-encoding']]).toEqual([path, status, coding]);
        expect(sent.headers['content-type']).toBe(plain.headers['content-type']);
        expect(decoded(sent).equals(plain.bytes)).toBe(true);
      }
      for (const path of ['/auth/sign-in', '/auth/setup']) {
        const page = await get(path, { 'Accept-Encoding': 'gzip, br' });
        expect([page.bytes.length > 1_024, page.headers['content-encoding']]).toEqual([true, undefined]);
      }
    });

    test.each(['/openapi.json', '/docs', '/docs/page.js'])('%s has a strong tag, and brotli or gzip', async (path) => {
      const plain = await send(service.url, path);
      expect(plain.headers.etag).toMatch(/^"[\w-]{22}"$/);
      for (const [accepted, coding] of [
        ['gzip, deflate, br', 'br'],
        ['gzip', 'gzip'],
      ] as const) {
        const sent = await send(service.url, path, { 'Accept-Encoding': accepted });
        expect(sent.headers['content-encoding']).toBe(coding);
        expect(decoded(sent).equals(plain.bytes)).toBe(true);
        const known = { 'Accept-Encoding': accepted, 'If-None-Match': String(sent.headers.etag) };
        const again = await send(service.url, path, known);
        expect([again.status, again.bytes.length, again.headers['content-encoding']]).toEqual([304, 0, undefined]);
      }
    });
  },
  { schema: SCHEMA },
);

describeOnOne(
  'compression of a front end',
  (service: TestService) => {
    test.each([
      ['/', 'br'],
      ['/app.js', 'br'],
      ['/photo.png', undefined],
      ['/short.js', undefined],
    ])('%s has the coding %s', async (path, coding) => {
      const plain = await send(service.url, path);
      const sent = await send(service.url, path, { 'Accept-Encoding': 'gzip, br' });
      expect(sent.headers['content-encoding']).toBe(coding);
      expect(decoded(sent).equals(plain.bytes)).toBe(true);
      const again = await send(service.url, path, { 'If-None-Match': String(sent.headers.etag) });
      expect(again.status).toBe(304);
    });
  },
  { schema: SCHEMA, env: { BYLAW_PUBLIC: folder } },
);
