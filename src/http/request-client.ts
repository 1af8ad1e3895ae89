/** Who sent a request, as far as the audit trail and the rate limits need to know. */
import type { Context } from 'koa';
import type { RequestClient } from '../auth/auth.ts';
import type { App } from './app.ts';
import { requestIdOf } from './observe/request-id.ts';

export function clientOf(ctx: Context, app: App): RequestClient {
  return { ip: app.addressOf(ctx.req), userAgent: ctx.get('User-Agent'), requestId: requestIdOf(ctx) };
}
