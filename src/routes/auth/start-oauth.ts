import type { Context } from 'koa';
import { SESSION_COOKIE } from '../../http/credentials.ts';
import { queryOf } from '../../http/query.ts';
import type { Route } from '../../http/route.ts';
import { Problem } from '../../problem.ts';
import { clientOf, FLOW_COOKIE, redirect, setCookie } from './answer.ts';

/** Another site may send a visitor here, too; that must not join an identity with the visitor's account. */
function isOwnNavigation(ctx: Context): boolean {
  return ['', 'none', 'same-origin'].includes(ctx.get('Sec-Fetch-Site'));
}

export const startOAuth: Route = {
  method: 'GET',
  path: '/api/auth/oauth/:provider/start',
  door: 'public',
  summary: 'Send the browser to a provider to sign in',
  body: 'none',
  accepts: 'any',
  async handle(ctx, app) {
    const given = queryOf(ctx).filter(({ key }) => key === 'redirect_to');
    if (given.length > 1 || given.some(({ value }) => value === undefined)) {
      const detail = 'expected `redirect_to` once, in UTF-8';
      throw new Problem('invalid_parameter', detail, {
        errors: [{ parameter: 'redirect_to', code: 'invalid_parameter', detail }],
      });
    }
    const { location, cookie } = await app.auth.startOAuth({
      provider: ctx.params.provider ?? '',
      redirectTo: given[0]?.value,
      sessionCookie: isOwnNavigation(ctx) ? ctx.cookies.get(SESSION_COOKIE) : undefined,
      client: clientOf(ctx, app),
    });
    setCookie(ctx, app, { name: FLOW_COOKIE, ...cookie });
    ctx.set('Cache-Control', 'no-store');
    redirect(ctx, location);
  },
};
