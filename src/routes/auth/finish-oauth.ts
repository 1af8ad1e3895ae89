import { queryOf } from '../../http/query.ts';
import type { Route } from '../../http/route.ts';
import { Problem } from '../../problem.ts';
import { answerIssued, clientOf, FLOW_COOKIE, redirect, setCookie, setSessionCookie } from './answer.ts';

export const finishOAuth: Route = {
  method: 'GET',
  path: '/api/auth/oauth/:provider/callback',
  door: 'public',
  summary: 'Where a provider sends the browser back to',
  body: 'none',
  accepts: 'any',
  async handle(ctx, app) {
    const query = new Map<string, string>();
    for (const { key, value } of queryOf(ctx)) {
      if (value === undefined || query.has(key))
        throw new Problem('oauth_failed', `the answer of the provider has \`${key}\` in no readable way`);
      query.set(key, value);
    }
    const cookie = ctx.cookies.get(FLOW_COOKIE);
    setCookie(ctx, app, { name: FLOW_COOKIE, value: '', maxAge: 0 });
    ctx.set('Cache-Control', 'no-store');
    const end = await app.auth.finishOAuth({
      provider: ctx.params.provider ?? '',
      query,
      cookie,
      client: clientOf(ctx, app),
    });
    if (end.kind === 'refused') return redirect(ctx, end.redirectTo);
    if (end.redirectTo === undefined) return answerIssued(ctx, app, end.issued);
    setSessionCookie(ctx, app, end.issued);
    redirect(ctx, end.redirectTo);
  },
};
