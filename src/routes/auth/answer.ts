/** What several authentication routes share: who is at the other end, and the session cookie. Not a route. */
import type { Context } from 'koa';
import type { Client, Issued } from '../../auth/auth.ts';
import type { App } from '../../http/app.ts';
import { SESSION_COOKIE } from '../../http/credentials.ts';
import { requestIdOf } from '../../http/request-id.ts';

/** Binds a started OAuth flow to the browser. */
export const FLOW_COOKIE = 'svc_oauth';

export function clientOf(ctx: Context, app: App): Client {
  return { ip: app.addressOf(ctx.req), userAgent: ctx.get('User-Agent'), requestId: requestIdOf(ctx) };
}

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Everywhere but on http on loopback. */
export function isSecure(baseUrl: string): boolean {
  const { protocol, hostname } = new URL(baseUrl);
  return protocol !== 'http:' || !LOOPBACK.test(hostname);
}

/** `maxAge` in seconds; 0 clears it. */
export function setCookie(
  ctx: Context,
  app: App,
  cookie: { readonly name: string; readonly value: string; readonly maxAge: number; readonly path?: string },
): void {
  const { name, value, maxAge, path = '/' } = cookie;
  const flags = ['HttpOnly', 'SameSite=Lax', ...(isSecure(app.config.baseUrl) ? ['Secure'] : [])];
  const expires = maxAge === 0 ? ['Expires=Thu, 01 Jan 1970 00:00:00 GMT'] : [];
  ctx.append('Set-Cookie', [`${name}=${value}`, `Path=${path}`, `Max-Age=${maxAge}`, ...expires, ...flags].join('; '));
}

export function setSessionCookie(ctx: Context, app: App, { cookie }: Issued): void {
  setCookie(ctx, app, { name: SESSION_COOKIE, ...cookie });
}

export function answerIssued(ctx: Context, app: App, issued: Issued): void {
  setSessionCookie(ctx, app, issued);
  ctx.status = 200;
  ctx.set('Cache-Control', 'no-store');
  ctx.body = issued.body;
}

export function clearSessionCookie(ctx: Context, app: App): void {
  setCookie(ctx, app, { name: SESSION_COOKIE, value: '', maxAge: 0 });
}

/** To an address that was checked before: it is sent as it is. */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location);
  ctx.body = null;
  ctx.status = 302;
}
