/** The body of a request, read once and strictly: koa-body collects what is still arriving, read-json-body.ts reads it. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { koaBody } from 'koa-body';
import { memoized } from '../../memoized.ts';
import { Problem } from '../../problem.ts';
import { ARRIVAL_LIMITS, inTime } from '../server/arrival.ts';
import { readJsonBody } from './read-json-body.ts';

/** `limit`: bytes, where a route takes less than others. */
export type BodyReader = (ctx: Context, limit?: number) => Promise<unknown>;

/** Bytes of the bodies of the authentication routes: strangers send them. */
export const AUTH_BODY_LIMIT = 16 * 1024;

/**
 * `limit` in bytes, `ms` to arrive within. Throws `unsupported_media_type`, `too_large`, `request_timeout`,
 * `malformed_json`.
 */
export function jsonBodyReader(limit: number, ms: number = ARRIVAL_LIMITS.bodyMs): BodyReader {
  const collectors = new Map<number, Collector>();
  const collect = async (ctx: Context, most: number): Promise<void> => {
    const known = collectors.get(most) ?? (await collector(most));
    collectors.set(most, known);
    await known(ctx, async () => {});
  };
  const arriving = async (ctx: Context, most: number): Promise<Buffer> => {
    await inTime(collect(ctx, most), ms).catch((error: unknown) => {
      throw readingFailed(error, most);
    });
    return Buffer.from((ctx.request.body as string | undefined) ?? '', 'latin1');
  };
  return async (ctx, less = limit) => {
    checkHeaders(ctx);
    const most = Math.min(less, limit);
    const bytes = arrivedBody(ctx.req) ?? (await arriving(ctx, most));
    if (bytes.length > most) throw bodyTooLarge(most);
    ctx.state.bodyBytes = bytes;
    return readJsonBody(bytes);
  };
}

/**
 * A small body arrives with the head, and is there before the request counts as complete. Collecting
 * it through streams would cost more than checking the rules of a write.
 */
function arrivedBody(request: IncomingMessage): Buffer | undefined {
  const { complete, headers, readableLength, readableEnded } = request;
  if (readableEnded) return Buffer.alloc(0);
  const isWhole = complete || headers['content-length'] === String(readableLength);
  if (!isWhole || !request.readable) return undefined;
  const bytes = (request.read() as Buffer | null) ?? Buffer.alloc(0);
  // So that the stream of the request ends.
  if (!complete) request.resume();
  return bytes;
}

type Collector = ReturnType<typeof koaBody>;

/** With the first body that is still arriving: it takes a tenth of the start, and most bodies need none. */
const loaded = memoized(() => import('koa-body'));

/** Latin-1 keeps every byte; koa-body would decode UTF-8 leniently, and accept duplicate keys. */
async function collector(limit: number): Promise<Collector> {
  const { koaBody } = await loaded();
  return koaBody({
    json: false,
    urlencoded: false,
    textTypes: ['application/json'],
    textLimit: limit,
    encoding: 'binary',
  });
}

/** SHA-256 of the bytes that were read, in hexadecimal: equal for equal bodies. */
export const bodyHashOf = (ctx: Context): string => createHash('sha256').update(ctx.state.bodyBytes).digest('hex');

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

/** RFC 6901. */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/**
 * Types that raw-body gives its errors when the client has closed the connection, before or while
 * it reads.
 */
const GONE = new Set(['request.aborted', 'stream.not.readable']);

function readingFailed(error: unknown, limit: number): unknown {
  const { status, type } = error as { status?: number; type?: string };
  if (status === 413) return bodyTooLarge(limit);
  if (status === 400 || GONE.has(type ?? '')) {
    return new Problem('malformed_json', 'the body ended before its announced length', { cause: error });
  }
  return error;
}

const bodyTooLarge = (limit: number): Problem =>
  new Problem('too_large', `a JSON body may hold ${limit} bytes at most`);
