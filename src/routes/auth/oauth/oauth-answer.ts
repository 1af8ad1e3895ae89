/** Reads the answer of a provider, and sends the browser on. Not a route. */
import type { Context } from 'koa';
import type { OAuthEnd } from '../../../auth/oauth/oauth.ts';
import type { OperationParameter } from '../../../describe/operation.ts';
import type { App } from '../../../http/app.ts';
import { clientOf } from '../../../http/request.ts';
import type { ProblemCode } from '../../../problem.ts';
import { SIGNED_IN } from '../../pages/provider-links.ts';
import {
  answerSignIn,
  CHALLENGE_COOKIE,
  FLOW_COOKIE,
  redirect,
  setCookie,
  setSessionCookie,
} from '../tokens-answer.ts';

export const answerParameter = (name: string): OperationParameter => ({
  name,
  in: 'query',
  description: 'As the provider sends it.',
  schema: { type: 'string' },
});

export const FINISH_PROBLEMS: readonly ProblemCode[] = [
  'oauth_failed',
  'oauth_denied',
  'invalid_credentials',
  'registration_closed',
  'email_unverified',
  'account_exists',
  'email_taken',
  'validation_failed',
  'not_found',
];

interface CallbackAnswer {
  readonly query: ReadonlyMap<string, string>;
  readonly isPosted: boolean;
}

export async function finishSignIn(ctx: Context, app: App, answer: CallbackAnswer): Promise<void> {
  const cookie = ctx.cookies.get(FLOW_COOKIE);
  setCookie(ctx, app, { name: FLOW_COOKIE, value: '', maxAge: 0 });
  ctx.set('Cache-Control', 'no-store');
  const provider = ctx.params.provider ?? '';
  const end = await app.auth.oauth.finish({ provider, ...answer, cookie, client: clientOf(ctx) });
  if (end.kind === 'signed_in' && end.redirectTo === undefined) return answerSignIn(ctx, app, end.outcome);
  if (end.kind === 'signed_in' && 'cookie' in end.outcome) setSessionCookie(ctx, app, end.outcome);
  redirect(ctx, withoutChallenge(ctx, app, end) ?? end.redirectTo ?? '/');
}

/** The service's own page has no script that would read the fragment: its challenge is in a cookie. Undefined: another end. */
function withoutChallenge(ctx: Context, app: App, end: OAuthEnd): string | undefined {
  if (end.kind !== 'signed_in' || !('challenge' in end.outcome)) return undefined;
  const [page = ''] = (end.redirectTo ?? '').split('#');
  if (page !== SIGNED_IN && !page.startsWith(`${SIGNED_IN}?`)) return undefined;
  setCookie(ctx, app, { name: CHALLENGE_COOKIE, value: end.outcome.challenge, maxAge: 300, path: SIGNED_IN });
  return page;
}
