import type { Context } from 'koa';
import { clientOf, queryOf, SESSION_COOKIE } from '../../../http/request.ts';
import { problemOfError } from '../../../problem.ts';
import { route } from '../../define-route.ts';
import { redirect, setFlowCookie } from '../tokens-answer.ts';

export const startOAuth = route({
  method: 'GET',
  path: '/api/auth/oauth/:provider/start',
  door: 'public',
  accepts: 'any',
  id: 'oauth_start',
  summary: 'Send the browser to a provider to sign in',
  parameters: [
    {
      name: 'redirect_to',
      in: 'query',
      description:
        'Where the browser goes afterwards: a path that starts with one `/`, or a URL in a configured origin.',
      schema: { type: 'string', maxLength: 2048 },
    },
  ],
  answers: { 302: { description: 'To the provider.', headers: ['Location', 'Set-Cookie'] } },
  problems: ['invalid_parameter', 'not_found', 'rate_limited'],
  async handle(ctx, app) {
    const started = await app.auth.oauth.start({
      provider: ctx.params.provider ?? '',
      redirectTo: redirectToOf(ctx),
      sessionCookie: isOwnNavigation(ctx) ? ctx.cookies.get(SESSION_COOKIE) : undefined,
      client: clientOf(ctx),
    });
    setFlowCookie(ctx, app, started);
    ctx.set('Cache-Control', 'no-store');
    redirect(ctx, started.location);
  },
});

/** Another site can send a visitor here too; that must not link an identity to the visitor's account. */
const isOwnNavigation = (ctx: Context): boolean => ['', 'none', 'same-origin'].includes(ctx.get('Sec-Fetch-Site'));

/** Throws `invalid_parameter` if it is repeated or not valid UTF-8. */
function redirectToOf(ctx: Context): string | undefined {
  const given = queryOf(ctx).filter(({ key }) => key === 'redirect_to');
  if (given.length <= 1 && given.every(({ value }) => value !== undefined)) return given[0]?.value;
  const detail = 'expected `redirect_to` once, in UTF-8';
  throw problemOfError('invalid_parameter', { parameter: 'redirect_to', code: 'invalid_parameter', detail });
}
