// @module-tag long
/** Findings S5, S6, L1, L2, L3 and L4 of the security review: bodies that stall, bounded answers, heads, hang-ups. */
import { PassThrough } from 'node:stream';
import { pino } from 'pino';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readMultipart } from '../../src/files/receive/multipart.ts';
import { upload } from '../files/sending.ts';
import { openSocket, readToEnd, sendRaw } from '../security/raw.ts';
import { describeOnOne, ROUTES_SCHEMA, type User } from '../support/service.ts';
import { until } from '../support/until.ts';

const lines: { readonly [key: string]: unknown }[] = [];
const memory = new PassThrough();
memory.on('data', (text: Buffer) =>
  lines.push(
    ...String(text)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ),
);
const log = { logger: pino({ level: 'info' }, memory), flush: () => undefined };

const MAX_CONNECTIONS = 60;

describeOnOne(
  'requests that cost more than they should',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });
    const head = (path: string, ...headers: readonly string[]): string =>
      [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...headers, '', ''].join('\r\n');

    describe('S5: public bodies are small and must come in time', () => {
      test.each([
        ['/api/auth/login', { email: 'a@b.org', password: 'x' }],
        ['/api/auth/register', { email: 'a@b.org', password: 'x' }],
        ['/api/auth/token/refresh', { refresh_token: 'x' }],
        ['/api/auth/password/reset/request', { email: 'a@b.org' }],
      ])('%s takes 16 KiB', async (path, body) => {
        const small = await service.anonymous.post(path, { ...body, more: 'x'.repeat(15_000) });
        const large = await service.anonymous.post(path, { ...body, more: 'x'.repeat(17_000) });
        expect([small.status, large.status, large.body.code]).toEqual([422, 413, 'too_large']);
      });
      test('a stalled body gets 408 and is cut off', async () => {
        const answer = await sendRaw(service.url, `${head('/api/auth/login', 'Content-Length: 100')}{`);
        expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
      });
      test('many stalled bodies end, and others are served meanwhile', async () => {
        const stalled = Array.from({ length: 30 }, () =>
          sendRaw(
            service.url,
            `${head('/api/posts', `Authorization: Bearer ${ann.token}`, 'Content-Length: 200000')}{`,
          ),
        );
        expect((await service.anonymous.get('/healthz')).status).toBe(200);
        const answers = await Promise.all(stalled);
        expect(new Set(answers.map((answer) => answer.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 408']));
      });
      test('an unread body does not keep its connection', async () => {
        const answer = await sendRaw(service.url, head('/api/posts', 'Content-Length: 200000'));
        expect(answer).toMatch(/^HTTP\/1\.1 401 /);
      });
      test('connections beyond the limit are closed, and silent ones keep no client out', async () => {
        const sockets = Array.from({ length: MAX_CONNECTIONS + 20 }, (_, i) => {
          const socket = openSocket(service.url);
          if (i % 2 === 0) socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Never: ');
          return socket;
        });
        let closed = 0;
        for (const socket of sockets) void readToEnd(socket).then(() => closed++);
        await until('connections beyond the limit are closed', () => closed >= 20);
        expect((await service.anonymous.get('/healthz')).status).toBe(200);
        for (const socket of sockets) socket.destroy();
      });
      test('an upload keeps a least pace', async () => {
        const body = new PassThrough();
        const drip = setInterval(() => body.write('x'), 10);
        const handler = { begin: () => undefined, data: () => undefined, end: () => undefined };
        const start = '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n';
        body.write(start);
        const pace = { window: 200, bytes: 2_048 };
        const reading = readMultipart(body as never, 'b', { ...handler, pace });
        await expect(reading).rejects.toMatchObject({ code: 'request_timeout' });
        clearInterval(drip);
      });
      test('an upload at that pace goes on', async () => {
        vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
        onTestFinished(() => void vi.useRealTimers());
        const body = new PassThrough();
        const handler = { begin: () => undefined, data: () => undefined, end: () => undefined };
        const reading = readMultipart(body as never, 'b', { ...handler, pace: { window: 300, bytes: 1_000 } });
        body.write('--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n');
        for (let i = 0; i < 40; i++) {
          body.write('x'.repeat(1_000));
          await vi.advanceTimersByTimeAsync(20);
        }
        body.end('\r\n--b--\r\n');
        await expect(reading).resolves.toBeUndefined();
      });
    });

    describe('S6: the first 100 errors and a count', () => {
      const keys = (count: number, name: (i: number) => string) =>
        Object.fromEntries(Array.from({ length: count }, (_, i) => [name(i), 0]));
      test('a body with 9,000 unknown fields gets 100 errors and a count', async () => {
        const { status, text, body } = await ann.client.post('/api/posts', { data: keys(9_000, (i) => `titl${i}`) });
        expect([status, body.errors.length, body.error_count]).toEqual([422, 100, 9_001]);
        expect(text.length).toBeLessThan(20_000);
        const suggestions = body.errors.filter(({ detail }: { detail: string }) => detail.includes('did you mean'));
        expect(suggestions).toHaveLength(10);
      });
      test('a body with 9,000 keys beside `data` gets 100 errors and a count', async () => {
        const { status, text, body } = await ann.client.post(
          '/api/posts',
          keys(9_000, (i) => `k${i}`),
        );
        expect([status, body.errors.length, body.error_count]).toEqual([422, 100, 9_001]);
        expect(text.length).toBeLessThan(20_000);
      });
      test('many unknown filters get 100 errors and a count', async () => {
        const query = Array.from({ length: 2_000 }, (_, i) => `k${i}=`).join('&');
        const { status, text, body } = await ann.client.get(`/api/posts?${query}`);
        expect([status, body.errors.length, body.error_count]).toEqual([400, 100, 2_000]);
        expect(text.length).toBeLessThan(20_000);
      });
      test('a long `expand` gets the first error alone', async () => {
        const { status, text } = await ann.client.get(`/api/posts?expand=${'x'.repeat(7_000)},${','.repeat(7_000)}`);
        expect([status, text.length < 1_000]).toEqual([400, true]);
      });
      test('an error repeats a long name once', async () => {
        const { status, text } = await ann.client.post('/api/posts', { data: { ['x'.repeat(200_000)]: 1 } });
        expect([status, text.length < 201_000]).toEqual([422, true]);
      });
      test('few errors have no count', async () => {
        expect((await ann.client.post('/api/posts', { data: {} })).body).not.toHaveProperty('error_count');
      });
    });

    describe('L1: /metrics', () => {
      test('the metrics can be read on this machine, not through a proxy', async () => {
        const local = await service.anonymous.get('/metrics', { Accept: 'text/plain' });
        expect(local.status).toBe(200);
        for (const name of ['X-Forwarded-For', 'Forwarded', 'Via', 'X-Real-IP']) {
          expect((await service.anonymous.get('/metrics', { [name]: '127.0.0.1' })).status).toBe(404);
        }
      });
      test('the metrics are collected once a second', async () => {
        const read = async () => (await service.anonymous.get('/metrics', { Accept: 'text/plain' })).text;
        const first = await read();
        await until('the next read gets the text of the one before', async () => {
          const before = await read();
          return (await read()) === before;
        });
        await until('the text is made again', async () => (await read()) !== first);
      });
    });

    test('L3: a request with two Host headers gets 400', async () => {
      for (const version of ['1.0', '1.1']) {
        const answer = await sendRaw(service.url, `GET /healthz HTTP/${version}\r\nHost: a\r\nhOST: a\r\n\r\n`);
        expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"malformed_request"/);
      }
    });

    test.each([
      ['Transfer-Encoding: gzip, chunked', '1.1', 501, 'not_implemented'],
      ['Transfer-Encoding: chunked', '1.0', 400, 'malformed_request'],
      ['Content-Type: application/json\r\ncontent-type: text/plain', '1.1', 400, 'malformed_request'],
      ['Authorization: Bearer a\r\nAUTHORIZATION: Bearer b', '1.1', 400, 'malformed_request'],
    ])('a request with %j of HTTP/%s gets %d and a closed connection', async (headers, version, status, code) => {
      const request = `POST /api/posts HTTP/${version}\r\nHost: a\r\n${headers}\r\n\r\n0\r\n\r\n`;
      const answer = await sendRaw(service.url, request);
      expect(answer).toMatch(
        new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*connection: close[\\s\\S]*"code":"${code}"`, 'i'),
      );
    });

    test('a body that would be too large is refused before it is asked for', async () => {
      const ask = (length: number) =>
        sendRaw(
          service.url,
          head(
            '/api/posts',
            `Authorization: Bearer ${ann.token}`,
            `Content-Length: ${length}`,
            'Expect: 100-continue',
            'Connection: close',
          ),
        );
      expect(await ask(99_999_999)).toMatch(/^HTTP\/1\.1 413 /);
      expect(await ask(20)).toMatch(/^HTTP\/1\.1 100 /);
    });

    test('L4: a client that hangs up is not a defect, and its address is logged', async () => {
      const mark = `hang-up-${Date.now()}`;
      for (const sent of ['', '{', '{"data":']) {
        const socket = openSocket(service.url);
        const headers = [`Authorization: Bearer ${ann.token}`, `X-Request-Id: ${mark}`, 'Content-Length: 100'];
        socket.write(head('/api/posts', ...headers) + sent, () => socket.destroy());
      }
      const said = () => lines.filter((line) => line.request_id === mark);
      await until('three requests are logged', () => said().length >= 3);
      expect(said().map(({ msg, address }) => [msg, address])).toEqual([
        ['request', '127.0.0.1'],
        ['request', '127.0.0.1'],
        ['request', '127.0.0.1'],
      ]);
    });
  },
  {
    schema: ROUTES_SCHEMA,
    env: { BYLAW_MAX_CONNECTIONS: String(MAX_CONNECTIONS) },
    arrival: { bodyMs: 400, lingerMs: 300 },
    log,
  },
);

describeOnOne(
  'under an https base URL',
  (service) => {
    test('L1: a setting makes the metrics public', async () => {
      const { status } = await service.anonymous.get('/metrics', {
        'X-Forwarded-For': '8.8.8.8',
        Accept: 'text/plain',
      });
      expect(status).toBe(200);
    });
    test('L2: every response has Strict-Transport-Security and Cross-Origin-Resource-Policy', async () => {
      const ann = await service.user();
      for (const answer of [
        await ann.client.get('/api/posts'),
        await service.anonymous.get('/healthz'),
        await service.anonymous.get('/nope'),
        await service.anonymous.get('/docs', { Accept: 'text/html' }),
      ]) {
        expect([
          answer.headers.get('strict-transport-security'),
          answer.headers.get('cross-origin-resource-policy'),
        ]).toEqual(['max-age=31536000', 'same-origin']);
      }
    });
    test('L2: any site may embed the content of a signed link', async () => {
      const ann = await service.user();
      const { id } = (await upload(ann.client, { bytes: 'x' })).body.data;
      const { url } = (await ann.client.post(`/api/files/${id}/link`)).body;
      const policyAt = async (path: string) =>
        (await ann.client.send('HEAD', path)).headers.get('cross-origin-resource-policy');
      const { pathname, search } = new URL(url);
      expect([await policyAt(`${pathname}${search}`), await policyAt(pathname)]).toEqual([
        'cross-origin',
        'same-origin',
      ]);
    });
    test('L2: the cookie is Secure, HttpOnly and Lax on the whole host', async () => {
      const { email, password } = await service.user();
      const { headers } = await service.anonymous.post('/api/auth/login', { email, password });
      expect(
        headers
          .getSetCookie()[0]!
          .split('; ')
          .slice(1)
          .map((part) => part.toLowerCase().split('=')[0]),
      ).toEqual(expect.arrayContaining(['path', 'secure', 'httponly', 'samesite']));
    });
  },
  { schema: ROUTES_SCHEMA, env: { BASE_URL: 'https://api.example', BYLAW_METRICS: 'public' } },
);
