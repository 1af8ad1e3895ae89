/** Requests from other sites: CORS for reads, and a check that changes with a cookie come from this site (CSRF). */
import type { Context, Next } from 'koa';
import { Problem } from '../problem.ts';

const ALLOWED_METHODS = 'GET, HEAD, POST, PATCH, DELETE';
const REQUEST_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Prefer, Range, X-Request-Id';
const ANSWER_HEADERS =
  'Accept-Ranges, Content-Disposition, Content-Range, ETag, Location, Preference-Applied, Retry-After, WWW-Authenticate, X-Request-Id';

/** Sends CORS headers to the configured origins only. */
export function answerOrigins(origins: readonly string[]) {
  return async (ctx: Context, next: Next): Promise<void> => {
    if (origins.length > 0) ctx.vary('Origin');
    const origin = ctx.get('Origin');
    if (origin === '' || !origins.includes(origin)) return next();
    ctx.set('Access-Control-Allow-Origin', origin);
    ctx.set('Access-Control-Allow-Credentials', 'true');
    if (ctx.method === 'OPTIONS' && ctx.get('Access-Control-Request-Method') !== '') {
      ctx.set('Access-Control-Allow-Methods', ALLOWED_METHODS);
      ctx.set('Access-Control-Allow-Headers', REQUEST_HEADERS);
      ctx.set('Access-Control-Max-Age', '600');
      ctx.status = 204;
      return;
    }
    ctx.set('Access-Control-Expose-Headers', ANSWER_HEADERS);
    await next();
  };
}

export interface OwnOrigins {
  /** Configured origins; they may send changes too. */
  readonly origins: readonly string[];
  readonly baseUrl: string;
}

const CHANGES = new Set(['POST', 'PATCH', 'DELETE', 'PUT']);

/**
 * Browsers add cookies to requests from any site, so a change that a cookie authenticates must come from this site.
 * Clients other than browsers send neither header and pass. Throws `cross_origin`.
 */
export function checkOrigin(ctx: Context, own: OwnOrigins): void {
  if (!CHANGES.has(ctx.method)) return;
  const origin = ctx.get('Origin');
  if (origin !== '' && own.origins.includes(origin)) return;
  const site = ctx.get('Sec-Fetch-Site');
  const allowed =
    site === '' ? origin === '' || origin === new URL(own.baseUrl).origin : site === 'same-origin' || site === 'none';
  if (!allowed) {
    throw new Problem(
      'cross_origin',
      'a request with a session cookie may write only from the same origin or a configured one',
    );
  }
}
