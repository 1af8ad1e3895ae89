import { closed, TEXT } from '../../../describe/operation.ts';
import { readForm } from '../../../http/form-body.ts';
import { route } from '../../define-route.ts';
import { signInAnswer } from '../tokens-answer.ts';
import { FINISH_PROBLEMS, finishSignIn } from './oauth-answer.ts';

/** The form comes from the provider's site, so the flow's cookie and `state` are what binds it to the browser. */
export const finishPostedOAuth = route({
  method: 'POST',
  path: '/api/auth/oauth/:provider/callback',
  isKept: true,
  door: 'public',
  accepts: 'any',
  id: 'oauth_posted_callback',
  summary: 'Finish a sign-in at a provider that posts its answer',
  description: 'Apple sends the browser here, with a form.',
  body: {
    type: 'application/x-www-form-urlencoded',
    shape: () => closed({ code: TEXT, state: TEXT, id_token: TEXT, user: TEXT, error: TEXT }),
    read: readForm,
  },
  answers: {
    200: signInAnswer,
    303: {
      description: 'To `redirect_to`, with the session cookie, or with `#challenge=…` where a second factor is due.',
      headers: ['Location', 'Set-Cookie'],
    },
  },
  problems: FINISH_PROBLEMS,
  handle: (ctx, app, query) => finishSignIn(ctx, app, { query, isPosted: true }),
});
