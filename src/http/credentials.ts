/** The credentials of a request. The auth room decides which of them counts. */
import type { Context } from 'koa';
import type { RequestCredentials } from '../auth/sessions/authenticator.ts';

export const SESSION_COOKIE = 'svc_session';

export function credentialsOf(ctx: Context): RequestCredentials {
  const { authorization, cookie } = ctx.req.headers;
  // Koa makes its reader of cookies only where there is something to read.
  return { authorization, cookie: cookie === undefined ? undefined : ctx.cookies.get(SESSION_COOKIE) };
}
