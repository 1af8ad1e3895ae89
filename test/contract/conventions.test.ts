// @module-tag partitions
/** "Conventions" of the interface, sentence by sentence. */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../support/client.ts';
import { NOBODY, outcomeOf } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';

export const SCHEMA = readFileSync(join(import.meta.dirname, 'bylaw.yaml'), 'utf8');

/** Sends paths and header lists exactly as written, which `fetch` would change. */
function exactly(
  base: string,
  method: string,
  path: string,
  headers: Record<string, string | string[]>,
  body?: Uint8Array | string,
): Promise<Answer> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const pairs = Object.entries(res.headers).map(([name, value]) => [name, String(value)] as [string, string]);
        const isJson = /\bjson\b/.test(res.headers['content-type'] ?? '');
        resolve({
          status: res.statusCode!,
          headers: new Headers(pairs),
          text,
          body: isJson && text !== '' ? JSON.parse(text) : undefined,
        });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

describeOnBoth(
  'conventions',
  (service) => {
    let ann: User;
    let id: string;
    const at = () => `/api/things/${id}`;
    beforeAll(async () => {
      ann = await service.user();
      id = (await ann.client.post('/api/things', { data: { title: 'a' } })).body.data.id;
    });
    const raw = (
      body: string | Uint8Array<ArrayBuffer>,
      headers: Record<string, string> = { 'Content-Type': 'application/json' },
      method = 'POST',
      path = '/api/things',
    ) => ann.client.send(method, path, { raw: body, headers });
    const bytes = (...list: (number | string)[]) =>
      new Uint8Array(
        Buffer.concat(list.map((each) => (typeof each === 'string' ? Buffer.from(each) : Buffer.from([each])))),
      );
    const good = '{"data":{"title":"a"}}';
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

    describe('media types', () => {
      for (const type of [
        'application/json',
        'application/json; charset=utf-8',
        'Application/JSON',
        'application/json;charset="UTF-8"',
      ])
        test(`the type ${type} is JSON`, async () =>
          expect((await raw(good, { 'Content-Type': type })).status).toBe(201));
      for (const type of [
        'text/plain',
        'application/xml',
        'application/jsonp',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'application/json, text/plain',
        'json',
      ])
        test(`the type ${type} is not JSON`, async () =>
          expect(outcomeOf(await raw(good, { 'Content-Type': type }))).toEqual([415, 'unsupported_media_type']));
      test('a missing type is not JSON', async () =>
        expect(outcomeOf(await raw(bytes(good), {}))).toEqual([415, 'unsupported_media_type']));
      for (const encoding of ['gzip', 'identity', 'br', 'deflate'])
        test(`the encoding ${encoding} is rejected`, async () =>
          expect(
            outcomeOf(await raw(good, { 'Content-Type': 'application/json', 'Content-Encoding': encoding })),
          ).toEqual([415, 'unsupported_media_type']));
      for (const accept of [
        'application/json',
        '*/*',
        'application/*',
        'text/html, */*;q=0.1',
        'application/problem+json, application/json',
        'application/json; charset=utf-8',
        'Application/JSON;charset="UTF-8", text/plain;q=0.9',
        'application/json;odata=verbose;q=0.5',
        '*/*;charset=utf-8',
        '',
      ])
        test(`the header Accept: ${accept} includes JSON`, async () =>
          expect((await ann.client.get(at(), { Accept: accept })).status).toBe(200));
      for (const accept of [
        'text/html',
        'application/json;q=0',
        'image/*, text/*',
        'application/json;q=0, text/html',
        'application/json;charset=utf-8;q=0',
        'text/html;charset=utf-8',
      ])
        test(`the header Accept: ${accept} excludes JSON`, async () =>
          expect(outcomeOf(await ann.client.get(at(), { Accept: accept }))).toEqual([406, 'not_acceptable']));
    });

    describe('bodies', () => {
      const malformed: Record<string, string | Uint8Array<ArrayBuffer>> = {
        nothing: '',
        'half an object': '{"data":',
        'two values': `${good} {}`,
        'a trailing comma': '{"data":{"title":"a",}}',
        'single quotes': "{'data':{}}",
        NaN: '{"data":{"x":NaN}}',
        'a leading zero': '{"data":{"n":01}}',
        'a comment': '{"data":{"title":"a"}/* */}',
        'a bare control character': '{"data":{"title":"a\n"}}',
        'a byte order mark': bytes(0xef, 0xbb, 0xbf, good),
        'invalid UTF-8': bytes('{"data":{"title":"', 0xff, '"}}'),
        'an overlong form': bytes('{"data":{"title":"', 0xc0, 0xaf, '"}}'),
        'a surrogate in UTF-8': bytes('{"data":{"title":"', 0xed, 0xa0, 0x80, '"}}'),
        'UTF-16': new Uint8Array(Buffer.from(good, 'utf16le')),
        'a duplicate key': '{"data":{"title":"a","title":"b"}}',
        'a duplicate key at the top': '{"data":{"title":"a"},"data":{"title":"b"}}',
        'a duplicate key, escaped': '{"data":{"title":"a","\\u0074itle":"b"}}',
        'a duplicate __proto__': '{"data":{"__proto__":1,"__proto__":2}}',
        'a duplicate key in an unknown one': '{"data":{"title":"a"},"other":{"a":1,"a":1}}',
        'depth 33': `{"data":{"title":${nested(31)}}}`,
        'depth 10,000': nested(10_000),
      };
      for (const [name, body] of Object.entries(malformed))
        test(`a body with ${name} is malformed`, async () =>
          expect(outcomeOf(await raw(body))).toEqual([400, 'malformed_json']));

      const invalid: readonly (readonly [body: string, ...errors: string[]])[] = [
        [`{"data":{"title":${nested(30)}}}`, '/data/title type'],
        ['{}', '/data required'],
        ['{"data":null}', '/data type'],
        ['{"data":[]}', '/data type'],
        ['{"data":"x"}', '/data type'],
        ['[]', ' type'],
        ['null', ' type'],
        ['"x"', ' type'],
        ['1', ' type'],
        ['{"data":{"title":"a"},"extra":1}', '/extra unknown'],
        ['{"data":{"title":"a"},"__proto__":1}', '/__proto__ unknown'],
        ['{"data":{"title":"a","__proto__":{"x":1}}}', '/data/__proto__ unknown'],
        [
          '{"data":{"title":"a","constructor":1,"hasOwnProperty":1,"toString":null}}',
          '/data/constructor unknown',
          '/data/hasOwnProperty unknown',
          '/data/toString unknown',
        ],
        ['{"data":{"title":"a","a/b~c":1}}', '/data/a~1b~0c unknown'],
        ['{"data":{"title":"a","":1}}', '/data/ unknown'],
      ];
      for (const [body, ...expected] of invalid)
        test(`the body ${body.slice(0, 60)} is invalid`, async () => {
          const answer = await raw(body);
          expect([
            answer.status,
            answer.body.code,
            answer.body.errors?.map(({ pointer }: { pointer: string }) => pointer),
          ]).toEqual([422, 'validation_failed', expected.map((each) => each.split(' ')[0])]);
        });

      test('a body over 256 KiB is too large, exactly 256 KiB is not', async () => {
        const filled = (size: number) => `{"data":{"title":"a"}${' '.repeat(size - good.length)}}`;
        expect((await raw(filled(256 * 1024))).status).toBe(201);
        expect(outcomeOf(await raw(filled(256 * 1024 + 1)))).toEqual([413, 'too_large']);
      });
      test('more than 1,000 ids in one operation are rejected before any lookup', async () => {
        const ids = (n: number) => Array.from({ length: n }, () => NOBODY);
        const much = await ann.client.patch(at(), { data: { marks: { remove: ids(1001) } } });
        expect([much.status, much.body.code]).toEqual([422, 'validation_failed']);
        expect((await ann.client.patch(at(), { data: { marks: { remove: ids(1000) } } })).status).toBe(200);
      });
    });

    describe('addresses', () => {
      test('an id is read in any letter case', async () => {
        const { body, status } = await ann.client.get(`/api/things/${id.toUpperCase()}`);
        expect([status, body.data.id]).toEqual([200, id]);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      });
      const missing = (path: string) => async () =>
        expect(outcomeOf(await exactly(service.url, 'GET', path, { Authorization: `Bearer ${ann.token}` }))).toEqual([
          404,
          'not_found',
        ]);
      for (const segment of [
        'x',
        '1',
        'null',
        '__proto__',
        '%00',
        '%FF',
        '%',
        '%ZZ',
        '%2e%2e',
        "'; DROP TABLE things; --".replaceAll(' ', '%20'),
        NOBODY,
        NOBODY.replaceAll('-', ''),
        `{${NOBODY}}`,
        `%7B${NOBODY}%7D`,
        `${NOBODY}%0A`,
        `%20${NOBODY}`,
      ])
        test(`the path /api/things/${segment} has no record`, missing(`/api/things/${segment}`));
      for (const name of [
        '__proto__',
        'constructor',
        'hasOwnProperty',
        'toString',
        'nothing',
        'Things',
        'things_marks',
        'pg_catalog',
        'things%00',
        '%FF',
        'things%2F',
        "things'",
      ]) {
        test(`the path /api/${name} has no collection`, missing(`/api/${name}`));
        test(`the path /api/${name}/id has no collection`, missing(`/api/${name}/${NOBODY}`));
      }
      for (const path of [
        '/api',
        '/api/',
        '/api//things',
        '/api/things/',
        '/api/things//',
        '/nothing',
        '/api/auth',
        '/api/auth/nothing',
        '/API/things',
      ])
        test(path, missing(path));
      test('a deeper path is unknown', async () => {
        await missing(`${at()}/`)();
        await missing(`${at()}/title`)();
      });
      test('a percent-encoded letter counts as that letter', async () => {
        const answer = await exactly(service.url, 'GET', `/api/%74hings/${id}`, {
          Authorization: `Bearer ${ann.token}`,
        });
        expect([answer.status, answer.body.data.id]).toEqual([200, id]);
      });
    });

    describe('methods', () => {
      const auth = () => ({ Authorization: `Bearer ${ann.token}` });
      const allow = async (method: string, path: string) => {
        const answer = await exactly(service.url, method, path, auth());
        return [answer.status, answer.body?.code, answer.headers.get('allow')?.split(', ').sort().join(', ')];
      };
      test('the collection takes GET and POST', async () => {
        for (const method of ['PUT', 'PATCH', 'DELETE'])
          expect(await allow(method, '/api/things')).toEqual([405, 'method_not_allowed', 'GET, HEAD, POST']);
      });
      test('the record takes GET, PATCH and DELETE', async () => {
        for (const method of ['PUT', 'POST'])
          expect(await allow(method, at())).toEqual([405, 'method_not_allowed', 'DELETE, GET, HEAD, PATCH']);
      });
      test('the routes of auth take one method each', async () => {
        expect(await allow('GET', '/api/auth/login')).toEqual([405, 'method_not_allowed', 'POST']);
        expect(await allow('POST', '/api/auth/me')).toEqual([405, 'method_not_allowed', 'GET, HEAD']);
        expect((await allow('POST', '/api/users')).slice(0, 2)).toEqual([405, 'method_not_allowed']);
      });
      test('HEAD gives GET without the body', async () => {
        for (const path of ['/api/things', at(), '/api/auth/me']) {
          const [get, head] = await Promise.all([ann.client.get(path), ann.client.send('HEAD', path)]);
          expect([head.status, head.text, head.headers.get('content-type'), head.headers.get('etag')]).toEqual([
            200,
            '',
            get.headers.get('content-type'),
            get.headers.get('etag'),
          ]);
        }
        expect((await ann.client.send('HEAD', `/api/things/${NOBODY}`)).status).toBe(404);
      });
    });

    describe('every answer', () => {
      test('an answer carries the request id of the caller, when it is plain', async () => {
        for (const given of ['abc', 'a'.repeat(128), '!~#$']) {
          for (const path of [at(), '/api/nothing', '/healthz', '/nothing'])
            expect((await ann.client.get(path, { 'X-Request-Id': given })).headers.get('x-request-id')).toBe(given);
        }
        for (const given of ['a'.repeat(129), 'a b', 'ä', '']) {
          const answer = await ann.client.get('/api/nothing', { 'X-Request-Id': given });
          expect(answer.headers.get('x-request-id')).toMatch(/^[!-~]{1,128}$/);
          expect(answer.headers.get('x-request-id')).not.toBe(given);
          expect(answer.body.request_id).toBe(answer.headers.get('x-request-id'));
        }
      });
      test('an error is a complete problem document', async () => {
        const { status, headers, body } = await ann.client.get('/api/things?limit=0', { 'X-Request-Id': 'mine' });
        expect(status).toBe(400);
        expect(headers.get('content-type')).toMatch(/^application\/problem\+json(; charset=utf-8)?$/);
        expect(body).toEqual({
          type: 'urn:bylaw:invalid_parameter',
          title: expect.any(String),
          status: 400,
          detail: expect.any(String),
          code: 'invalid_parameter',
          request_id: 'mine',
          errors: [{ parameter: 'limit', code: expect.any(String), detail: expect.any(String) }],
        });
      });
      test('a success is JSON', async () =>
        expect((await ann.client.get(at())).headers.get('content-type')).toMatch(
          /^application\/json(; charset=utf-8)?$/,
        ));
      test('an answer with tokens is not stored', async () => {
        const login = await service.anonymous.post('/api/auth/login', { email: ann.email, password: ann.password });
        const refreshed = await service.anonymous.post('/api/auth/token/refresh', {
          refresh_token: login.body.refresh_token,
        });
        for (const { status, headers, body } of [login, refreshed]) {
          expect([status, headers.get('cache-control'), Object.keys(body).sort(), body.token_type]).toEqual([
            200,
            'no-store',
            ['access_token', 'expires_in', 'refresh_expires_in', 'refresh_token', 'token_type', 'user'],
            'Bearer',
          ]);
          expect(headers.getSetCookie()[0]).toMatch(/^svc_session=[^;]+;/);
        }
      });
    });
  },
  { schema: SCHEMA },
);
