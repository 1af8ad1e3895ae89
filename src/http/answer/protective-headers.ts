/**
 * Headers of every response. A browser must not guess a type, frame, embed, or load anything for
 * what it was given.
 */
import type { Context } from 'koa';
import type { Config } from '../../config.ts';

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

/** With an https base URL, tells browsers to use https only (HSTS). */
export function protect(config: Pick<Config, 'baseUrl'>) {
  return (ctx: Context): void => {
    for (const [name, value] of PROTECTION) ctx.res.setHeader(name, value);
    // Read at each request: with port 0 the base URL is known only once the service listens.
    if (config.baseUrl.startsWith('https://')) ctx.set('Strict-Transport-Security', TRANSPORT_SECURITY);
  };
}

/** For content opened by a signed link: any site that has the link may embed it. */
export const allowEmbedding = (ctx: Context): void => ctx.set('Cross-Origin-Resource-Policy', 'cross-origin');
