/**
 * Reads the JSON body of a request, once and strictly: JSON that parsers read differently is an
 * error. koa-body collects a body that is still arriving.
 */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { koaBody } from 'koa-body';
import { memoized } from '../memoized.ts';
import { Problem } from '../problem.ts';
import { QueuePerKey } from '../queue-per-key.ts';
import { currentCaller } from '../queued-caller.ts';
import { withDeadline } from '../with-deadline.ts';
import { JsonStructureError, parseJson } from './json-text.ts';
import { ARRIVAL_LIMITS } from './server/client-limits.ts';

/** `limit`: bytes, for a route that takes less than others. */
export type BodyReader = (ctx: Context, limit?: number) => Promise<unknown>;

/** Bytes of a body of the authentication routes, which strangers send. */
export const AUTH_BODY_LIMIT = 16 * 1024;

/** Bodies of one caller that arrive at a time; later ones wait unread, so that a flood of them costs others no memory. */
const ARRIVING = { running: 4, waiting: 128 };
/** Bytes of a body that keeps its turn until its request is answered: its values take several times as much. */
const LONG_BODY = 65_536;

/**
 * `limit` in bytes, `ms` to arrive within. Throws `unsupported_media_type`, `too_large`, `request_timeout`,
 * `malformed_json`, `rate_limited`.
 */
export function jsonBodyReader(limit: number, ms: number = ARRIVAL_LIMITS.bodyMs): BodyReader {
  const turns = new QueuePerKey(ARRIVING, tooManyBodies);
  const collectors = new Map<number, Collector>();
  const collect = async (ctx: Context, most: number): Promise<void> => {
    const known = collectors.get(most) ?? (await collector(most));
    collectors.set(most, known);
    const pieces: Buffer[] = [];
    const keep = (piece: Buffer): unknown => pieces.push(piece);
    try {
      const collected = known(ctx, async () => {});
      // koa-body listens by now: the body flows from the first listener on.
      ctx.req.on('data', keep);
      await collected;
    } finally {
      ctx.req.off('data', keep);
      for (const piece of pieces) release(piece);
    }
  };
  const arriving = async (ctx: Context, most: number): Promise<Buffer> => {
    const onLate = (): never => {
      const detail = `the body did not arrive within ${ms / 1_000} s`;
      throw new Problem('request_timeout', detail, { headers: { Connection: 'close' } });
    };
    const end = performance.now() + ms;
    const arrived = Promise.withResolvers<Buffer>();
    const turn = async (): Promise<void> => {
      const left = end - performance.now();
      // The body has waited for its turn all the time, and its connection is closed.
      if (left <= 0) onLate();
      await withDeadline(collect(ctx, most), left, onLate);
      const bytes = (ctx.request.body as Buffer | undefined) ?? Buffer.alloc(0);
      arrived.resolve(bytes);
      if (bytes.length > LONG_BODY) await responseClosed(ctx.res);
    };
    const { id, isKept } = currentCaller();
    // Strangers of one address do not wait for each other to sign in.
    (isKept ? turn() : turns.run(id, turn)).catch(arrived.reject);
    return withDeadline(arrived.promise, ms, onLate).catch((error: unknown) => {
      throw readingFailed(error, most);
    });
  };
  return async (ctx, less = limit) => {
    checkHeaders(ctx);
    const most = Math.min(less, limit);
    if (Number(ctx.req.headers['content-length']) > most) throw bodyTooLarge(most);
    askForBody(ctx);
    const bytes = arrivedBody(ctx.req) ?? (await arriving(ctx, most));
    if (bytes.length > most) throw bodyTooLarge(most);
    if (ctx.req.headers['idempotency-key'] !== undefined) ctx.state.bodyHash = bodyDigest(bytes);
    try {
      return readJsonBody(bytes);
    } finally {
      if (bytes.length > LONG_BODY) release(bytes);
    }
  };
}

/**
 * Frees the memory of a buffer that is read no more. V8 would free it with a collection: a flood of bodies of 1 MiB held
 * 100 MiB of their pieces, and had V8 collect the whole heap 20 times a second, for up to 120 ms.
 */
function release({ buffer, byteLength }: Buffer): void {
  // A pooled buffer shares its memory.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/** SHA-256 in hexadecimal: equal for equal bodies. */
const bodyDigest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const responseClosed = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => (response.closed ? resolve() : response.once('close', resolve)));

/** Tells a client that waits for it (`Expect: 100-continue`) to send the body. Call it when nothing speaks against the body. */
export function askForBody({ req, res }: Context): void {
  if (req.headers.expect !== undefined && req.httpVersion === '1.1') res.writeContinue();
}

/**
 * A small body arrives with the head, and is there before the request counts as complete. Collecting
 * it through streams would cost more than checking the rules of a write.
 */
export function arrivedBody(request: IncomingMessage): Buffer | undefined {
  const { complete, headers, readableLength, readableEnded } = request;
  if (readableEnded) return Buffer.alloc(0);
  const isWhole = complete || headers['content-length'] === String(readableLength);
  if (!isWhole || !request.readable) return undefined;
  const bytes = (request.read() as Buffer | null) ?? Buffer.alloc(0);
  // Ends the stream of the request.
  if (!complete) request.resume();
  return bytes;
}

type Collector = ReturnType<typeof koaBody>;

/** Lazy: importing it is a tenth of the startup, and most bodies do not need it. */
const loaded = memoized(() => import('koa-body'));

/**
 * Without an encoding, koa-body gives the bytes. It would decode UTF-8 leniently and accept duplicate keys, and a string
 * of a body would be two more copies of it.
 */
async function collector(limit: number): Promise<Collector> {
  const { koaBody } = await loaded();
  return koaBody({
    json: false,
    urlencoded: false,
    textTypes: ['application/json'],
    textLimit: limit,
    encoding: '',
  });
}

function checkHeaders(ctx: Context): void {
  if (ctx.req.headers['content-type'] !== 'application/json') checkType(ctx);
  const encoding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (encoding !== '') throw unsupported('send the body without a Content-Encoding');
}

function checkType(ctx: Context): void {
  if (ctx.request.type.toLowerCase() !== 'application/json') {
    throw unsupported('send the body as JSON, with `Content-Type: application/json`');
  }
  const charset = ctx.request.charset.toLowerCase();
  if (charset !== '' && charset !== 'utf-8' && charset !== 'utf8') throw unsupported('send the body in UTF-8');
}

function unsupported(detail: string): Problem {
  return new Problem('unsupported_media_type', detail, { headers: { 'Accept-Encoding': 'identity' } });
}

/** The error types of raw-body for a client that closes the connection before or during the read. */
const LEFT_CLIENT_TYPES = new Set(['request.aborted', 'stream.not.readable']);

function readingFailed(error: unknown, limit: number): unknown {
  const { status, type } = error as { status?: number; type?: string };
  if (status === 413) return bodyTooLarge(limit);
  if (status === 400 || LEFT_CLIENT_TYPES.has(type ?? '')) {
    return new Problem('malformed_json', 'the body ended before its announced length', { cause: error });
  }
  return error;
}

const tooManyBodies = (): Problem =>
  new Problem('rate_limited', 'too many of your bodies arrive at once; send fewer at a time');

const bodyTooLarge = (limit: number): Problem =>
  new Problem('too_large', `a JSON body may hold ${limit} bytes at most`);

// ---------------------------------------------------------------- strict JSON

const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

/**
 * Parses strictly: JSON.parse alone lets the last of two equal keys win, and decoding UTF-8 puts
 * U+FFFD where bytes were wrong. Throws `malformed_json`.
 */
export function readJsonBody(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw malformedJson('the body is not valid UTF-8');
  if (bytes.length === 0) throw malformedJson('the body is empty; send a JSON object');
  if (bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK))
    throw malformedJson('the body begins with a byte order mark; send plain UTF-8');
  try {
    return parseJson(bytes);
  } catch (cause) {
    if (cause instanceof JsonStructureError) throw malformedJson(cause.message);
    if (!(cause instanceof SyntaxError)) throw cause;
    const place = /position (\d+)/.exec(cause.message)?.[1];
    throw malformedJson(`the body is not valid JSON${place === undefined ? '' : ` (at character ${place})`}`, cause);
  }
}

function malformedJson(detail: string, cause?: unknown): Problem {
  return new Problem('malformed_json', detail, { cause });
}
