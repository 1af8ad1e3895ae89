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
        'Where the browser goes afterwards: a path that starts with one `/`, a URL in a configured origin, or the address of an app under `redirects`.',
      schema: { type: 'string', maxLength: 2048 },
    },
    {
      name: 'code_challenge',
      in: 'query',
      description: 'Required for an app, which gets `?code=`: the SHA-256 of its verifier, in base64url.',
      schema: { type: 'string', pattern: '^[\\w-]{43}$' },
    },
    {
      name: 'code_challenge_method',
      in: 'query',
      description: 'How the challenge is made.',
      schema: { const: 'S256' },
    },
  ],
  answers: { 302: { description: 'To the provider.', headers: ['Location', 'Set-Cookie'] } },
  problems: ['invalid_parameter', 'not_found', 'rate_limited'],
  async handle(ctx, app) {
    const method = parameterOf(ctx, 'code_challenge_method');
    if (method !== undefined && method !== 'S256') throw badParameter('code_challenge_method', 'expected `S256`');
    const started = await app.auth.oauth.start({
      provider: ctx.params.provider ?? '',
      redirectTo: parameterOf(ctx, 'redirect_to'),
      codeChallenge: parameterOf(ctx, 'code_challenge'),
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
function parameterOf(ctx: Context, name: string): string | undefined {
  const given = queryOf(ctx).filter(({ key }) => key === name);
  if (given.length <= 1 && given.every(({ value }) => value !== undefined)) return given[0]?.value;
  throw badParameter(name, `expected \`${name}\` once, in UTF-8`);
}

const badParameter = (parameter: string, detail: string) =>
  problemOfError('invalid_parameter', { parameter, code: 'invalid_parameter', detail });
