/** The credentials of a request. The auth room decides which of them counts. */
import type { Context } from 'koa';
import type { RequestCredentials } from '../auth/authenticator.ts';

export const SESSION_COOKIE = 'svc_session';

export function credentialsOf(ctx: Context): RequestCredentials {
  return { authorization: ctx.req.headers.authorization, cookie: ctx.cookies.get(SESSION_COOKIE) };
}
