import type { Context } from 'koa';
import { queryOf } from '../../../http/request.ts';
import { Problem } from '../../../problem.ts';
import { route } from '../../define-route.ts';
import { signInAnswer } from '../tokens-answer.ts';
import { answerParameter, FINISH_PROBLEMS, finishSignIn } from './oauth-answer.ts';

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
  parameters: ['code', 'state', 'error', 'error_description', 'iss'].map(answerParameter),
  answers: {
    200: signInAnswer,
    302: {
      description: 'To `redirect_to`, with the session cookie, or with `#challenge=…` where a second factor is due.',
      headers: ['Location', 'Set-Cookie'],
    },
  },
  problems: FINISH_PROBLEMS,
  handle: (ctx, app) => finishSignIn(ctx, app, { query: singleValues(ctx), isPosted: false }),
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
