/** "Conventions" and "Errors" of the interface: bodies, headers, methods, origins, and what is outside /api. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { describeOnOne, ROUTES_SCHEMA, type User } from '../support/service.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };

describeOnOne(
  'the wire',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });
    const send = (raw: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = JSON_TYPE) =>
      ann.client.send('POST', '/api/posts', { raw, headers });

    describe('a body', () => {
      test.each([
        ['', 'nothing'],
        ['{', 'half'],
        ['{"data":{"title":"x"},}', 'a comma too many'],
        ["{'data':{}}", 'single quotes'],
        ['{"data":{"title":NaN}}', 'NaN'],
        ['\uFEFF{"data":{"title":"x"}}', 'a byte order mark'],
        ['{"data":{"title":"x","title":"y"}}', 'a key twice'],
        ['{"data":{"title":"x","\\u0074itle":"y"}}', 'a key twice, once escaped'],
        ['{"data":{"title":"x"},"data":{"title":"y"}}', 'data twice'],
        [`{"data":{"title":${'['.repeat(31)}${']'.repeat(31)}}}`, 'depth 33'],
      ])('the body %j is malformed (%s)', async (raw) => {
        expect(outcomeOf(await send(raw))).toEqual([400, 'malformed_json']);
      });
      test('bytes that are not UTF-8 are malformed', async () => {
        for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]]) {
          const raw = Uint8Array.from([...Buffer.from('{"data":{"title":"'), ...bytes, ...Buffer.from('"}}')]);
          expect(outcomeOf(await send(raw))).toEqual([400, 'malformed_json']);
        }
      });
      test('characters of every length in UTF-8 are read', async () => {
        const title = 'aé€😀';
        expect((await send(Buffer.from(JSON.stringify({ data: { title } })))).body.data.title).toBe(title);
      });
      test('a body of depth 32 is read', async () => {
        expect(outcomeOf(await send(`{"data":{"title":${'['.repeat(30)}${']'.repeat(30)}}}`))).toEqual([
          422,
          'validation_failed',
          '/data/title wrong_type',
        ]);
      });
      test('a body may have the allowed size, to the byte', async () => {
        const of = (bytes: number) => `{"data":{"nope":"${'x'.repeat(bytes - 20)}"}}`;
        expect(of(1 << 18)).toHaveLength(1 << 18);
        expect((await send(of(1 << 18))).status).toBe(422);
        expect(outcomeOf(await send(of((1 << 18) + 1)))).toEqual([413, 'too_large']);
      });
      test('a body without a length is read', async () => {
        const stream = (count: number) =>
          fetch(`${service.url}/api/posts`, {
            method: 'POST',
            headers: { ...JSON_TYPE, Authorization: `Bearer ${ann.token}` },
            body: new ReadableStream({
              start(controller) {
                controller.enqueue(Buffer.from('{"data":{"title":"x","nope":"'));
                for (let i = 0; i < count; i++) controller.enqueue(Buffer.alloc(1 << 16, 'x'));
                controller.enqueue(Buffer.from('"}}'));
                controller.close();
              },
            }),
            duplex: 'half',
          } as RequestInit);
        expect((await stream(3)).status).toBe(422);
        expect((await stream(5)).status).toBe(413);
      });
      test('bodies with the head, after it, in pieces, and absent share one connection', async () => {
        const { hostname, port } = new URL(service.url);
        const headOf = (path: string, headers: string) =>
          `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ann.token}\r\n${headers}\r\n`;
        const json = JSON.stringify({ data: { title: 'aé€😀' } });
        const length = Buffer.byteLength(json);
        const head = headOf('/api/posts', `Content-Type: application/json\r\nContent-Length: ${length}\r\n`);
        const empty = headOf('/api/posts', 'Content-Type: application/json\r\n');
        const noParts = headOf('/api/files', 'Content-Type: multipart/form-data; boundary=b\r\nConnection: close\r\n');
        const socket = connect({ port: Number(port), host: hostname, noDelay: true });
        const said = text(socket);
        for (const piece of [`${head}${json}`, head, json, head, json.slice(0, 9), json.slice(9), empty]) {
          socket.write(piece);
          await sleep(20);
        }
        // Several at once.
        socket.write(`${head}${json}${empty}${head}${json}${noParts}`);
        const answers = [...(await said).matchAll(/HTTP\/1\.1 (\d+) |"detail":"([^"]+)"/g)];
        expect(answers.map(([, status, detail]) => status ?? detail)).toEqual([
          ...['201', '201', '201', '400', 'the body is empty; send a JSON object'],
          ...['201', '400', 'the body is empty; send a JSON object', '201'],
          ...['400', 'the boundaries between the parts are malformed, or the last part is cut off'],
        ]);
      });
      test.each([
        [{}],
        [{ 'Content-Type': 'text/plain' }],
        [{ 'Content-Type': 'application/x-www-form-urlencoded' }],
        [{ 'Content-Type': 'application/jsonp' }],
        [{ 'Content-Type': 'application/vnd.api+json' }],
        [{ ...JSON_TYPE, 'Content-Encoding': 'gzip' }],
        [{ ...JSON_TYPE, 'Content-Encoding': 'identity' }],
        [{ 'Content-Type': 'application/json; charset=latin1' }],
      ] as [Record<string, string>][])('the type %j is not supported', async (headers) => {
        expect(outcomeOf(await send('{"data":{"title":"x"}}', { 'Content-Type': '', ...headers }))).toEqual([
          415,
          'unsupported_media_type',
        ]);
      });
      test.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset="UTF-8"'])(
        'the type %s is supported',
        async (type) => {
          expect((await send('{"data":{"title":"x"}}', { 'Content-Type': type })).status).toBe(201);
        },
      );
      test.each([
        ['[]', ''],
        ['"x"', ''],
        ['null', ''],
        ['{}', '/data'],
        ['{"data":null}', '/data'],
        ['{"data":[]}', '/data'],
        ['{"data":{"title":"x"},"a/b":1}', '/a~1b'],
      ])('the body %s is valid JSON but not a write', async (raw, pointer) => {
        const { status, body } = await send(raw);
        expect([status, body.code, body.errors[0].pointer]).toEqual([422, 'validation_failed', pointer]);
      });
      test('__proto__ is a name like any other', async () => {
        expect(outcomeOf(await send('{"data":{"title":"x","__proto__":{"a":1},"constructor":1}}'))).toEqual([
          422,
          'validation_failed',
          '/data/__proto__ unknown_field',
          '/data/constructor unknown_field',
        ]);
      });
    });

    describe('every answer', () => {
      test('an answer carries a request id: the caller’s if it is harmless', async () => {
        const idOf = async (given?: string) =>
          (await service.anonymous.get('/api/posts', given === undefined ? {} : { 'X-Request-Id': given })).headers.get(
            'x-request-id',
          );
        expect(await idOf('abc-1/2')).toBe('abc-1/2');
        expect(await idOf('x'.repeat(128))).toBe('x'.repeat(128));
        for (const given of [undefined, '', 'a b', 'x'.repeat(129), 'é'])
          expect(await idOf(given)).toMatch(/^[0-9a-f-]{36}$/);
        const { body } = await service.anonymous.get('/api/posts', { 'X-Request-Id': 'mine' });
        expect(body.request_id).toBe('mine');
      });
      test('an error is problem details', async () => {
        const { headers, body } = await ann.client.get('/api/posts?nope=1');
        expect(headers.get('content-type')).toBe('application/problem+json');
        expect(body).toEqual({
          type: 'urn:bylaw:filter_unknown_key',
          title: expect.any(String),
          status: 400,
          detail: expect.any(String),
          code: 'filter_unknown_key',
          request_id: headers.get('x-request-id'),
          errors: [{ parameter: 'nope', code: 'filter_unknown_key', detail: expect.any(String) }],
        });
      });
      test('an answer keeps browsers from guessing and framing', async () => {
        const { headers } = await ann.client.get('/api/posts');
        expect([
          headers.get('x-content-type-options'),
          headers.get('x-frame-options'),
          headers.get('cache-control'),
        ]).toEqual(['nosniff', 'DENY', 'private, no-cache']);
        expect([headers.get('x-powered-by'), headers.get('server')]).toEqual([null, null]);
      });
    });

    describe('Accept', () => {
      test.each(['text/html', 'application/xml', 'application/json;q=0', 'image/*'])(
        'the header %s excludes JSON',
        async (accept) => {
          expect(outcomeOf(await ann.client.get('/api/posts', { Accept: accept }))).toEqual([406, 'not_acceptable']);
        },
      );
      test.each(['*/*', 'application/*', 'text/html, application/json;q=0.1', 'application/json'])(
        'the header %s includes JSON',
        async (accept) => {
          expect((await ann.client.get('/api/posts', { Accept: accept })).status).toBe(200);
        },
      );
    });

    describe('methods', () => {
      test.each([
        ['PUT', '/api/posts', 'POST, GET, HEAD'],
        ['DELETE', '/api/posts', 'POST, GET, HEAD'],
        ['POST', '/api/posts/x', 'GET, HEAD, PATCH, DELETE'],
        ['POST', '/api/users', 'GET, HEAD'],
        ['GET', '/api/auth/login', 'POST'],
        ['POST', '/api/auth/me', 'GET, HEAD'],
        ['POST', '/healthz', 'GET, HEAD'],
      ])('the method %s %s is not allowed', async (method, path, allow) => {
        const answer = await ann.client.send(method, path);
        expect([...outcomeOf(answer), answer.headers.get('allow')]).toEqual([405, 'method_not_allowed', allow]);
      });
      test('HEAD gives GET without the body', async () => {
        const { status, headers, text } = await ann.client.send('HEAD', '/api/posts');
        expect([status, text]).toEqual([200, '']);
        expect(Number(headers.get('content-length'))).toBe(
          Buffer.byteLength((await ann.client.get('/api/posts')).text),
        );
      });
      test.each([
        '/nope',
        '/api',
        '/api/',
        '/api/auth',
        '/api/auth/nope',
        '/api/posts/',
        '/API/posts',
        '//api/posts',
        '/api/posts/x/y',
        '/healthz/',
      ])('the path %s is unknown', async (path) => {
        expect((await ann.client.get(path)).status).toBe(404);
      });
    });

    describe('other origins', () => {
      const from = (origin: string, method: string, headers: Record<string, string> = {}) =>
        ann.client.send(method, '/api/posts', { headers: { Origin: origin, ...headers } });
      test('a configured origin gets the CORS headers', async () => {
        const preflight = await service.anonymous.send('OPTIONS', '/api/posts', {
          headers: { Origin: 'https://app.example', 'Access-Control-Request-Method': 'PATCH' },
        });
        expect(preflight.status).toBe(204);
        expect(preflight.headers.get('access-control-allow-methods')).toContain('PATCH');
        const { status, headers } = await from('https://app.example', 'GET');
        expect([
          status,
          headers.get('access-control-allow-origin'),
          headers.get('access-control-allow-credentials'),
        ]).toEqual([200, 'https://app.example', 'true']);
        expect(headers.get('access-control-expose-headers')).toContain('ETag');
        expect(headers.get('vary')).toContain('Origin');
      });
      test('another origin gets none', async () => {
        for (const origin of [
          'https://evil.example',
          'https://app.example.evil.example',
          'http://app.example',
          'null',
        ]) {
          const { headers } = await from(origin, 'GET');
          expect([headers.get('access-control-allow-origin'), headers.get('access-control-allow-credentials')]).toEqual(
            [null, null],
          );
          expect((await from(origin, 'OPTIONS', { 'Access-Control-Request-Method': 'GET' })).status).toBe(405);
        }
      });
    });

    test('a request that HTTP forbids gets an answer, and the server lives', async () => {
      const { hostname, port } = new URL(service.url);
      for (const raw of [
        'nonsense\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
        `GET /${'x'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      ]) {
        const socket = connect(Number(port), hostname);
        const said = text(socket);
        socket.end(raw);
        expect(await said).toMatch(/^HTTP\/1\.1 4\d\d /);
      }
      expect((await ann.client.get('/healthz')).status).toBe(200);
    });

    describe('outside /api', () => {
      test('health, readiness and metrics answer', async () => {
        expect((await service.anonymous.get('/healthz')).body).toEqual({ status: 'alive' });
        expect((await service.anonymous.get('/readyz')).body).toEqual({ status: 'ready' });
        await ann.client.get('/api/posts');
        const { headers, text } = await service.anonymous.get('/metrics', { Accept: 'text/plain' });
        expect(headers.get('content-type')).toMatch(/^text\/plain/);
        expect(text).toMatch(
          /bylaw_http_request_duration_seconds_count\{method="GET",route="\/api\/:collection",status="200"\} [1-9]/,
        );
        expect(text).not.toContain(ann.id);
      });
      test('the document and its page answer', async () => {
        const { body } = await service.anonymous.get('/openapi.json');
        expect(body.openapi).toMatch(/^3\.1\./);
        expect(Object.keys(body.paths)).toContain('/api/posts/{id}');
        const page = await service.anonymous.get('/docs', { Accept: 'text/html' });
        expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
        expect(page.text).toContain('/api/posts/{id}');
        // Every link has a target.
        const places = new Set([...page.text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
        const links = [...page.text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
        expect(links.length).toBeGreaterThan(50);
        expect(links.filter((id) => !places.has(id))).toEqual([]);
      });
    });
  },
  { schema: `origins: ['https://app.example']\n${ROUTES_SCHEMA}` },
);
