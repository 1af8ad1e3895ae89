/** The body of a request, read once and strictly. */
import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { Problem } from '../problem.ts';
import { ARRIVAL_LIMITS } from './arrival.ts';
import { collectBody } from './collect-body.ts';
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
  return async (ctx, less = limit) => {
    checkHeaders(ctx);
    const bytes = await collectBody(ctx.req, { bytes: Math.min(less, limit), ms });
    ctx.state.bodyBytes = bytes;
    return readJsonBody(bytes);
  };
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
