/**
 * Protects browsers: headers of every response, CORS for reads of other sites, and a check that
 * writes with a cookie come from this site (CSRF).
 */

import type { Context } from 'koa';
import { isLoopback } from '../../auth/loopback.ts';
import { Problem } from '../../problem.ts';
import type { App } from '../app.ts';

/** A browser must not guess a type, frame, embed, or load anything for a response. */
export const PROTECTIVE_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

const PROTECTION = Object.entries(PROTECTIVE_HEADERS);

/** Seconds: a year. No `includeSubDomains`: other hosts of the domain are not this service's to decide. */
const TRANSPORT_SECURITY = 'max-age=31536000';

/** Sets the protective headers; with an https base URL, browsers use https only (HSTS). */
export function setProtectiveHeaders(ctx: Context, { config }: App): void {
  for (const [name, value] of PROTECTION) ctx.res.setHeader(name, value);
  // Read at each request: with port 0 the base URL is known only once the service listens.
  if (config.baseUrl.startsWith('https://')) ctx.set('Strict-Transport-Security', TRANSPORT_SECURITY);
}

/** Lets every site that has a signed link embed its content. */
export const allowEmbedding = (ctx: Context): void => ctx.set('Cross-Origin-Resource-Policy', 'cross-origin');

// ---------------------------------------------------------------- CORS

const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const REQUEST_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Prefer, Range, X-Request-Id';
const RESPONSE_HEADERS =
  'Accept-Ranges, Content-Disposition, Content-Range, ETag, Location, Preference-Applied, Retry-After, WWW-Authenticate, X-Request-Id';

/** Sends CORS headers to trusted origins. Returns true if they answer the request (a preflight). */
export function answerOrigin(ctx: Context, app: App): boolean {
  if (app.schema.origins.length > 0 || app.schema.guests || app.config.isDevelopment) ctx.vary('Origin');
  const origin = ctx.get('Origin');
  if (origin === '') return false;
  const isPreflight = ctx.method === 'OPTIONS' && ctx.get('Access-Control-Request-Method') !== '';
  if (isTrusted(ctx, app)) ctx.set('Access-Control-Allow-Credentials', 'true');
  // A preflight has no credential: any page may ask with a publishable key, and reads the answer if that names the page.
  else if (!isPreflight || !app.schema.guests) return false;
  if (!isPreflight) {
    allowReading(ctx);
    return false;
  }
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Allow-Methods', ALLOWED_METHODS);
  ctx.set('Access-Control-Allow-Headers', REQUEST_HEADERS);
  ctx.set('Access-Control-Max-Age', '600');
  ctx.status = 204;
  return true;
}

/** Lets the page that has sent the request read the answer. */
export function allowReading(ctx: Context): void {
  const origin = ctx.get('Origin');
  if (origin === '') return;
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Expose-Headers', RESPONSE_HEADERS);
}

/** A configured origin; or, under `bylaw dev`, a page that this machine serves. */
function isTrusted(ctx: Context, { schema, config }: App): boolean {
  const origin = ctx.get('Origin');
  if (origin === '') return false;
  return (
    schema.origins.includes(origin) || (config.isDevelopment && isLoopbackOrigin(origin) && isRequestedOnLoopback(ctx))
  );
}

// ---------------------------------------------------------------- CSRF

const WRITING_METHODS = new Set(['POST', 'PATCH', 'DELETE', 'PUT']);

/**
 * Browsers add cookies to requests from any site, so a write that a cookie authenticates must come
 * from this site. Clients other than browsers send neither header and pass, unless the cookie is one that
 * other sites send, too. Throws `cross_origin`.
 */
export function checkOrigin(ctx: Context, app: App, isByCookie: boolean): void {
  if (!WRITING_METHODS.has(ctx.method) || isTrusted(ctx, app)) return;
  const origin = ctx.get('Origin');
  const site = ctx.get('Sec-Fetch-Site');
  const isOwn = origin === new URL(app.config.baseUrl).origin;
  const allowed =
    isByCookie && app.schema.cookie.sameSite === 'none'
      ? isOwn
      : site === ''
        ? origin === '' || isOwn
        : site === 'same-origin' || site === 'none';
  if (!allowed) {
    throw new Problem(
      'cross_origin',
      'a request with a session cookie may write only from the same origin or a configured one',
    );
  }
}

// ---------------------------------------------------------------- loopback names

function isLoopbackOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  return url.origin === origin && /^https?:$/.test(url.protocol) && isLoopback(url.hostname);
}

/** Reads the Host header: another name that leads to this machine (DNS rebinding) does not count. */
function isRequestedOnLoopback(ctx: Context): boolean {
  const url = `http://${ctx.get('Host')}`;
  return URL.canParse(url) && isLoopback(new URL(url).hostname);
}

/** Under `bylaw dev`, a page of `localhost` calls `127.0.0.1`, which a browser takes for another site. */
export function isOtherLoopbackName(ctx: Context, app: App): boolean {
  if (!app.config.isDevelopment || !isTrusted(ctx, app)) return false;
  const { hostname } = new URL(ctx.get('Origin'));
  return (
    isLoopback(hostname) && isRequestedOnLoopback(ctx) && hostname !== new URL(`http://${ctx.get('Host')}`).hostname
  );
}
