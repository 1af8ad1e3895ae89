import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { answerSignIn, guestAnswer } from './tokens-answer.ts';

export const beGuest = route({
  method: 'POST',
  path: '/api/auth/guest',
  door: 'public',
  ownSite: true,
  id: 'be_guest',
  summary: 'Start the session of a guest',
  description:
    'For visitors who are not signed in; it ends with a login. Only a schema with `guests: true` admits them.',
  answers: { 201: guestAnswer },
  problems: ['not_found', 'rate_limited'],
  async handle(ctx, app) {
    answerSignIn(ctx, app, await app.auth.accounts.beGuest(clientOf(ctx)));
    ctx.status = 201;
  },
});
