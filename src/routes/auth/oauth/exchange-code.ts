import { z } from 'zod';
import { guestAt } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { answerSignIn, signInAnswer } from '../tokens-answer.ts';

export const exchangeCode = route({
  method: 'POST',
  path: '/api/auth/oauth/exchange',
  isKept: true,
  door: 'public',
  ownSite: true,
  id: 'oauth_exchange',
  summary: 'Exchange the code of a native app',
  description:
    'The code that came with the address of the app, and the verifier whose SHA-256 was `code_challenge`. The answer is that of a login.',
  body: jsonBody({
    code: z.string('expected string'),
    verifier: z.string('expected string').regex(/^[\w.~-]{43,128}$/, 'expected 43 to 128 letters, digits, `-._~`'),
  }),
  answers: { 200: signInAnswer },
  problems: ['invalid_credentials', 'email_unverified', 'rate_limited'],
  async handle(ctx, app, body) {
    const exchange = { ...body, client: clientOf(ctx), guest: await guestAt(ctx, app) };
    answerSignIn(ctx, app, await app.auth.oauth.exchange(exchange));
  },
});
