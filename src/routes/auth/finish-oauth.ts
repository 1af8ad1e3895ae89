import type { Context } from 'koa';
import type { OperationParameter } from '../../describe/operation.ts';
import { clientOf, queryOf } from '../../http/request.ts';
import { Problem } from '../../problem.ts';
import { route } from '../define-route.ts';
import { answerSignIn, FLOW_COOKIE, redirect, setCookie, setSessionCookie, signInAnswer } from './tokens-answer.ts';

const callbackParameter = (name: string): OperationParameter => ({
  name,
  in: 'query',
  description: 'As the provider sends it.',
  schema: { type: 'string' },
});

export const finishOAuth = route({
  method: 'GET',
  path: '/api/auth/oauth/:provider/callback',
  isKept: true,
  door: 'public',
  accepts: 'any',
  id: 'oauth_callback',
  summary: 'Finish a sign-in at a provider',
  description:
    'The provider sends the browser here. An error goes to `redirect_to` as `?error=<code>`, where there is one.',
  parameters: ['code', 'state', 'error', 'error_description', 'iss'].map(callbackParameter),
  answers: {
    200: signInAnswer,
    302: {
      description: 'To `redirect_to`, with the session cookie, or with `#challenge=…` where a second factor is due.',
      headers: ['Location', 'Set-Cookie'],
    },
  },
  problems: [
    'oauth_failed',
    'oauth_denied',
    'registration_closed',
    'email_unverified',
    'account_exists',
    'email_taken',
    'validation_failed',
    'not_found',
  ],
  async handle(ctx, app) {
    const query = singleValues(ctx);
    const cookie = ctx.cookies.get(FLOW_COOKIE);
    setCookie(ctx, app, { name: FLOW_COOKIE, value: '', maxAge: 0 });
    ctx.set('Cache-Control', 'no-store');
    const provider = ctx.params.provider ?? '';
    const end = await app.auth.oauth.finish({ provider, query, cookie, client: clientOf(ctx) });
    if (end.kind === 'refused') return redirect(ctx, end.redirectTo);
    if (end.redirectTo === undefined) return answerSignIn(ctx, app, end.outcome);
    if ('cookie' in end.outcome) setSessionCookie(ctx, app, end.outcome);
    redirect(ctx, end.redirectTo);
  },
});

/** Throws `oauth_failed` for a key that is repeated or not valid UTF-8. */
function singleValues(ctx: Context): ReadonlyMap<string, string> {
  const query = new Map<string, string>();
  for (const { key, value } of queryOf(ctx)) {
    if (value === undefined || query.has(key)) {
      throw new Problem('oauth_failed', `the provider's answer repeats \`${key}\`, or it is not valid UTF-8`);
    }
    query.set(key, value);
  }
  return query;
}
