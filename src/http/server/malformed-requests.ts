/**
 * Answers input that never becomes a request: bytes that are not HTTP, a head that is too large or
 * too slow, CONNECT. Node would send a bare status line or close the connection; this service sends
 * problem details as usual, and echoes nothing that the client sent.
 */
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '../../problem.ts';
import { detailsOf } from '../answer/errors.ts';
import type { Logger } from '../observe/log.ts';
import { PROTECTIVE_HEADERS } from './browser-security.ts';
import type { Connections } from './client-limits.ts';

/** The module is not imported, for the reason that server.ts gives. */
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/**
 * A client that is still sending gets this long to read the answer; after an immediate close it
 * might see only a reset.
 */
const LINGER_MS = 1_000;

export function answerMalformedRequests(server: Server, connections: Connections, log: Logger): void {
  const refused = new WeakSet<Duplex>();
  const refuse = (socket: Duplex, problem: Problem, { code: reason, rawPacket }: ParseError = {}): void => {
    if (socket.destroyed || !socket.writable) return void socket.destroy();
    const requestId = randomUUID();
    log.info({ request_id: requestId, status: problem.status, code: problem.code, reason }, 'no request');
    socket.end(rawAnswer(problem, requestId, isHead(rawPacket)));
    const late = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(late));
  };

  server.on('clientError', (error: ParseError, socket) => {
    // The parser fails again on the bytes that follow.
    if (refused.has(socket)) return;
    refused.add(socket);
    const answer = (): void => refuse(socket, problemOfParseError(error), error);
    const before = connections.latestResponse(socket);
    if (before === undefined || before.closed) answer();
    // The malformed request follows one that is still being answered.
    else if (before.req.complete) before.once('close', answer);
    else if (before.headersSent) socket.destroy();
    else answer();
  });
  server.on('connect', (_request, socket) => {
    socket.on('error', () => socket.destroy());
    socket.resume();
    refuse(
      socket,
      new Problem('method_not_allowed', 'this service is not a proxy: CONNECT is not allowed', {
        headers: { Allow: '' },
      }),
    );
  });
}

/** Node's error for bytes that are not a request. */
interface ParseError {
  readonly code?: string | undefined;
  /** The bytes that the parser had when it failed. */
  readonly rawPacket?: Buffer;
}

/** Every response to a HEAD has no body, errors too. */
const isHead = (packet: Buffer | undefined): boolean => packet?.toString('latin1', 0, 5) === 'HEAD ';

function problemOfParseError({ code }: ParseError): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Problem('headers_too_large', 'the request line and the headers together are larger than 16 KiB');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Problem('too_large', 'the extensions of the chunks are larger than 16 KiB');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('request_timeout', 'the request did not arrive in time');
    default:
      return new Problem('malformed_request', 'expected a valid HTTP/1.1 request');
  }
}

function rawAnswer(problem: Problem, requestId: string, withoutBody: boolean): string {
  const body = detailsOf(problem, requestId);
  const headers = {
    ...PROTECTIVE_HEADERS,
    ...problem.headers,
    'X-Request-Id': requestId,
    'Cache-Control': 'no-store',
    'Content-Type': 'application/problem+json',
    'Content-Length': Buffer.byteLength(body),
    Date: new Date().toUTCString(),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`, ...lines, '', withoutBody ? '' : body].join(
    '\r\n',
  );
}
