// @module-tag long
/** Input that Node would answer by itself, over raw sockets: we send problem details, and echo nothing. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openLog } from '../../src/http/observe/log.ts';
import { Connections } from '../../src/http/server/client-limits.ts';
import { answerMalformedRequests } from '../../src/http/server/malformed-requests.ts';
import { ROUTES_SCHEMA, TestService } from '../support/service.ts';

interface Said {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** All answers of a connection, in order. */
function readAnswers(said: string): readonly Said[] {
  const answers: Said[] = [];
  for (let rest = said; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    const [first, ...lines] = rest.slice(0, end).split('\r\n');
    const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/).slice(0, 2) as [string, string]));
    const length = Number(headers.get('content-length'));
    answers.push({ status: Number(first!.split(' ')[1]), headers, body: rest.slice(end + 4, end + 4 + length) });
    rest = rest.slice(end + 4 + length);
  }
  return answers;
}

const open = (url: string): Socket => connect(Number(new URL(url).port), new URL(url).hostname);

async function send(url: string, raw: string): Promise<readonly Said[]> {
  const socket = open(url);
  socket.write(raw);
  return readAnswers(await text(socket));
}

const MARK = 'a<mark>of-the-caller';

describe('malformed requests', () => {
  const service = new TestService('embedded');
  beforeAll(() => service.start({ schema: ROUTES_SCHEMA }));
  afterAll(() => service.stop());
  const head = (lines: string) => `GET /healthz HTTP/1.1\r\n${lines}\r\n\r\n`;

  test.each([
    ['no HTTP at all', `${MARK}\r\n\r\n`, 400, 'malformed_request'],
    ['a method that is none', `${MARK} / HTTP/1.1\r\nHost: x\r\n\r\n`, 400, 'malformed_request'],
    ['a version that is none', `GET /${MARK} HTTP/7.1\r\nHost: x\r\n\r\n`, 400, 'malformed_request'],
    ['a space in the target', `GET /${MARK} x HTTP/1.1\r\nHost: x\r\n\r\n`, 400, 'malformed_request'],
    ['a header without a colon', head(`Host: x\r\n${MARK}`), 400, 'malformed_request'],
    ['a bare carriage return', head(`Host: x\r\nX-A: ${MARK}\rX-B: y`), 400, 'malformed_request'],
    ['two lengths', head('Host: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked'), 400, 'malformed_request'],
    ['no Host', head(`X-A: ${MARK}`), 400, 'malformed_request'],
    ['an Expect that cannot be met', head(`Host: x\r\nExpect: ${MARK}`), 417, 'expectation_failed'],
    ['a head that is too large', head(`Host: x\r\nX-A: ${MARK.repeat(2_000)}`), 431, 'headers_too_large'],
    ['an address that is too long', `GET /${MARK.repeat(2_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'headers_too_large'],
    ['a head of a megabyte', head(`Host: x\r\nX-A: ${MARK.repeat(50_000)}`), 431, 'headers_too_large'],
    [
      'a chunk that is none',
      `POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${MARK}\r\n`,
      400,
      'malformed_request',
    ],
    [
      'chunk extensions without end',
      `POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}\r\na\r\n`,
      413,
      'too_large',
    ],
    ['CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n', 405, 'method_not_allowed'],
  ])('%s', async (_, raw, status, code) => {
    const answers = await send(service.url, raw);
    expect(answers).toHaveLength(1);
    const { headers, body } = answers[0]!;
    expect(JSON.parse(body)).toEqual({
      type: `urn:bylaw:${code}`,
      title: expect.any(String),
      status,
      detail: expect.any(String),
      code,
      request_id: headers.get('x-request-id'),
      errors: [],
    });
    expect(answers[0]!.status).toBe(status);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      connection: 'close',
      date: expect.stringMatching(/ GMT$/),
    });
    expect(body + JSON.stringify([...headers])).not.toMatch(/mark|caller|x{10}/);
  });

  test('a HEAD that is too large has no body in its response', async () => {
    const socket = open(service.url);
    socket.write(`HEAD / HTTP/1.1\r\nHost: x\r\nX-A: ${'x'.repeat(20_000)}\r\n\r\n`);
    const said = await text(socket);
    expect([said.slice(0, 12), said.slice(said.indexOf('\r\n\r\n'))]).toEqual(['HTTP/1.1 431', '\r\n\r\n']);
  });

  test('an old client needs no Host, and its Expect is ignored', async () => {
    const [answer] = await send(service.url, 'GET /healthz HTTP/1.0\r\nExpect: nothing\r\n\r\n');
    expect([answer!.status, answer!.body]).toEqual([200, '{"status":"alive"}']);
  });

  test('the server meets 100-continue', async () => {
    const socket = open(service.url);
    socket.write(
      'POST /api/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-Continue\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n',
    );
    const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
    expect(first.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('{}');
    expect(readAnswers(await text(socket))[0]!.status).toBe(422);
  });

  test('a malformed request after a valid one is answered after it', async () => {
    const answers = await send(service.url, `GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n${MARK}\r\n\r\n`);
    expect(answers.map(({ status, body }) => [status, JSON.parse(body).code])).toEqual([
      [200, undefined],
      [400, 'malformed_request'],
    ]);
  });

  test('a client that goes on sending reads the answer, and is cut off', async () => {
    const socket = open(service.url);
    const said = text(socket);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    const sending = setInterval(() => socket.writable && socket.write('nonsense\r\n\r\n'), 10);
    expect(readAnswers(await said).map(({ status }) => status)).toEqual([400]);
    await closed;
    clearInterval(sending);
  });

  test('a client that stops sending is cut off too', async () => {
    const socket = connect({ port: Number(new URL(service.url).port), host: '127.0.0.1', allowHalfOpen: true });
    socket.write('nonsense\r\n\r\n');
    await text(socket);
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    const broken = new Promise((resolve) => socket.once('error', resolve));
    socket.write('x');
    socket.write('y');
    expect(await broken).toMatchObject({ code: expect.stringMatching(/EPIPE|ECONNRESET/) });
  });
});

/** Without the rest of the service. */
function answerAlone(server: Server): void {
  const connections = new Connections(server, 100, 5_000);
  server.prependListener('request', (request, response) => connections.serve(request, response));
  answerMalformedRequests(server, connections, openLog('silent').logger);
}

test('a head that does not arrive in time gets 408', async () => {
  const server = createServer({ headersTimeout: 50, connectionsCheckingInterval: 20 });
  answerAlone(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answers = await send(url, 'GET / HTTP/1.1\r\nX-A: ');
  expect(answers.map(({ status, body }) => [status, JSON.parse(body).code])).toEqual([[408, 'request_timeout']]);
  server.close();
});

test('a body that breaks while its answer is under way cuts the answer: nothing is written into it', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Length': 10 });
    response.write('12345');
  });
  answerAlone(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const said = text(socket);
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  await once(socket, 'data');
  socket.write('nonsense\r\n');
  expect((await said).endsWith('\r\n\r\n12345')).toBe(true);
  server.close();
});
