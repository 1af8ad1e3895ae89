/**
 * Sets the cookies of the authentication routes, and sends the response with tokens. Not a route.
 */

import type { Context } from 'koa';
import type { Issued, SignedIn, StartedOAuth } from '../../auth/auth.ts';
import { isLoopback } from '../../auth/loopback.ts';
import { user } from '../../describe/collection-schemas.ts';
import { type Json, object, type RouteAnswer, type Shape, TEXT } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { SESSION_COOKIE } from '../../http/request.ts';
import { isOtherLoopbackName } from '../../http/server/browser-security.ts';
import { cookieDomain } from '../../http/server/cookie-site.ts';
import { GUEST_ROW } from '../../policy/check/guests.ts';

/** Binds a started OAuth flow to the browser. */
export const FLOW_COOKIE = 'svc_oauth';

/** Holds the challenge of a sign-in at a provider for the service's own page, which has no script. */
export const CHALLENGE_COOKIE = 'svc_challenge';

/** Returns false only for http on loopback. */
function isSecure(baseUrl: string): boolean {
  const { protocol, hostname } = new URL(baseUrl);
  return protocol !== 'http:' || !isLoopback(hostname);
}

export interface Cookie {
  readonly name: string;
  readonly value: string;
  /** Seconds; 0 clears it. */
  readonly maxAge: number;
  readonly path?: string;
  /** Default: the host alone. */
  readonly domain?: string | undefined;
  /** A form that another site posts brings it. */
  readonly isCrossSite?: boolean;
}

export function setCookie(ctx: Context, app: App, cookie: Cookie): void {
  const { name, value, maxAge, path = '/', domain, isCrossSite = false } = cookie;
  const flags = ['HttpOnly', ...(isCrossSite ? CROSS_SITE : siteFlags(ctx, app))];
  const expires = maxAge === 0 ? ['Expires=Thu, 01 Jan 1970 00:00:00 GMT'] : [];
  const place = [`Path=${path}`, ...(domain === undefined ? [] : [`Domain=${domain}`])];
  ctx.append('Set-Cookie', [`${name}=${value}`, ...place, `Max-Age=${maxAge}`, ...expires, ...flags].join('; '));
}

const CROSS_SITE = ['SameSite=None', 'Secure'];

function siteFlags(ctx: Context, app: App): readonly string[] {
  // A browser keeps a Lax cookie from a page of another name. It takes a Secure one over http from
  // this machine.
  if (app.schema.cookie.sameSite === 'none' || isOtherLoopbackName(ctx, app)) return CROSS_SITE;
  return ['SameSite=Lax', ...(isSecure(app.config.baseUrl) ? ['Secure'] : [])];
}

export function setSessionCookie(ctx: Context, app: App, { cookie }: Issued): void {
  const domain = cookieDomain(app.schema.cookie, app.config);
  setCookie(ctx, app, { name: SESSION_COOKIE, ...cookie, domain });
  // A browser would send the cookie of the host alone, from before the domain, in front of this one.
  if (domain !== undefined) setCookie(ctx, app, { name: SESSION_COOKIE, value: '', maxAge: 0 });
}

export function setFlowCookie(ctx: Context, app: App, { cookie, isPosted }: StartedOAuth): void {
  setCookie(ctx, app, { name: FLOW_COOKIE, ...cookie, isCrossSite: isPosted });
}

const SECONDS_SCHEMA = { type: 'integer', description: 'Seconds.' };

const tokensOf = (holder: Json): Json =>
  object({
    access_token: { ...TEXT, description: 'A JWT; send it as `Authorization: Bearer …`.' },
    token_type: { const: 'Bearer' },
    expires_in: SECONDS_SCHEMA,
    refresh_token: { ...TEXT, description: 'Works once.' },
    refresh_expires_in: SECONDS_SCHEMA,
    user: holder,
  });
const tokens: Shape = (scope) => scope.define('Tokens', tokensOf(user(scope)));
const guestTokens: Shape = (scope) =>
  scope.define('GuestTokens', tokensOf(object({ roles: { const: GUEST_ROW.roles } })));

/** Describes the response of `answerIssued`. */
export const tokensAnswer: RouteAnswer = {
  description: 'The tokens; the session cookie is set.',
  headers: ['Set-Cookie'],
  shape: tokens,
};

const challenge: Shape = (scope) =>
  scope.define(
    'SignInChallenge',
    object({
      challenge: { ...TEXT, description: 'Works for five minutes, at `/api/auth/challenge`.' },
      methods: { type: 'array', items: { enum: ['totp', 'recovery'] } },
    }),
  );

/** Describes the response of `answerSignIn`. */
export const signInAnswer: RouteAnswer = {
  description: 'The tokens, and the session cookie is set; or a challenge, where the user has a second factor.',
  headers: ['Set-Cookie'],
  shape: (scope) => ({ anyOf: [tokens(scope), challenge(scope)] }),
};

/** Describes the same of a route that gives tokens to guests, too. */
export const tokensOfAnyone: RouteAnswer = {
  ...tokensAnswer,
  shape: (scope) => (scope.schema.guests ? { anyOf: [tokens(scope), guestTokens(scope)] } : tokens(scope)),
};

/** The tokens of a guest. */
export const guestAnswer: RouteAnswer = { ...tokensAnswer, shape: (scope) => guestTokens(scope) };

export function answerIssued(ctx: Context, app: App, issued: Issued): void {
  setSessionCookie(ctx, app, issued);
  ctx.status = 200;
  ctx.set('Cache-Control', 'no-store');
  ctx.body = issued.body;
}

export function answerSignIn(ctx: Context, app: App, outcome: SignedIn): void {
  if ('cookie' in outcome) {
    answerIssued(ctx, app, outcome);
    return;
  }
  ctx.status = 200;
  ctx.set('Cache-Control', 'no-store');
  ctx.body = outcome;
}

export function clearSessionCookie(ctx: Context, app: App): void {
  const domain = cookieDomain(app.schema.cookie, app.config);
  const ended = { name: SESSION_COOKIE, value: '', maxAge: 0 };
  if (domain !== undefined) setCookie(ctx, app, { ...ended, domain });
  setCookie(ctx, app, ended);
}

/** INVARIANT: the location was checked before; it is sent as it is. */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location);
  ctx.body = null;
  // After 303, no browser posts the form again.
  ctx.status = ctx.method === 'POST' ? 303 : 302;
}
