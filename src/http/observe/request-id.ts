/**
 * Every answer names its request: by the caller's own `X-Request-Id` where it is harmless in a log,
 * else by a new one.
 */
import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';

const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

export function giveRequestId(ctx: Context): void {
  const given = ctx.get('X-Request-Id');
  const id = REQUEST_ID.test(given) ? given : randomUUID();
  ctx.state.requestId = id;
  ctx.res.setHeader('X-Request-Id', id);
}

export const requestIdOf = (ctx: Context): string => ctx.state.requestId;
