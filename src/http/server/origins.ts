/**
 * Requests from other sites: CORS for reads, and a check that changes with a cookie come from this
 * site (CSRF).
 */
import type { Context } from 'koa';
import { Problem } from '../../problem.ts';
import type { App } from '../app.ts';

const ALLOWED_METHODS = 'GET, HEAD, POST, PATCH, DELETE';
const REQUEST_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Prefer, Range, X-Request-Id';
const ANSWER_HEADERS =
  'Accept-Ranges, Content-Disposition, Content-Range, ETag, Location, Preference-Applied, Retry-After, WWW-Authenticate, X-Request-Id';

/** Sends CORS headers to trusted origins only. Returns whether they were all that was asked for. */
export function answerOrigins(app: App) {
  const varies = app.schema.origins.length > 0 || app.config.isDevelopment;
  return (ctx: Context): boolean => {
    if (varies) ctx.vary('Origin');
    const origin = ctx.get('Origin');
    if (!isTrusted(ctx, app)) return false;
    ctx.set('Access-Control-Allow-Origin', origin);
    ctx.set('Access-Control-Allow-Credentials', 'true');
    if (ctx.method === 'OPTIONS' && ctx.get('Access-Control-Request-Method') !== '') {
      ctx.set('Access-Control-Allow-Methods', ALLOWED_METHODS);
      ctx.set('Access-Control-Allow-Headers', REQUEST_HEADERS);
      ctx.set('Access-Control-Max-Age', '600');
      ctx.status = 204;
      return true;
    }
    ctx.set('Access-Control-Expose-Headers', ANSWER_HEADERS);
    return false;
  };
}

const CHANGES = new Set(['POST', 'PATCH', 'DELETE', 'PUT']);

/**
 * Browsers add cookies to requests from any site, so a change that a cookie authenticates must come
 * from this site. Clients other than browsers send neither header and pass. Throws `cross_origin`.
 */
export function checkOrigin(ctx: Context, app: App): void {
  if (!CHANGES.has(ctx.method) || isTrusted(ctx, app)) return;
  const origin = ctx.get('Origin');
  const site = ctx.get('Sec-Fetch-Site');
  const allowed =
    site === ''
      ? origin === '' || origin === new URL(app.config.baseUrl).origin
      : site === 'same-origin' || site === 'none';
  if (!allowed) {
    throw new Problem(
      'cross_origin',
      'a request with a session cookie may write only from the same origin or a configured one',
    );
  }
}

/** Configured; or, under `bylaw dev`, a page that this machine serves. */
function isTrusted(ctx: Context, { schema, config }: App): boolean {
  const origin = ctx.get('Origin');
  if (origin === '') return false;
  return (
    schema.origins.includes(origin) || (config.isDevelopment && isLoopbackOrigin(origin) && isAskedOnLoopback(ctx))
  );
}

const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
export const isLoopback = (hostname: string): boolean => LOOPBACK_HOST.test(hostname);

function isLoopbackOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  return url.origin === origin && /^https?:$/.test(url.protocol) && isLoopback(url.hostname);
}

/** By the Host header: another name that leads to this machine (DNS rebinding) does not count. */
function isAskedOnLoopback(ctx: Context): boolean {
  const url = `http://${ctx.get('Host')}`;
  return URL.canParse(url) && isLoopback(new URL(url).hostname);
}

/** Under `bylaw dev`: a page of `localhost` calls `127.0.0.1`, which a browser takes for another site. */
export function isOtherLoopbackName(ctx: Context, app: App): boolean {
  if (!app.config.isDevelopment || !isTrusted(ctx, app)) return false;
  const { hostname } = new URL(ctx.get('Origin'));
  return isLoopback(hostname) && isAskedOnLoopback(ctx) && hostname !== new URL(`http://${ctx.get('Host')}`).hostname;
}
