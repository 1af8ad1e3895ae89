import { guestAt } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { answerSignIn, tokensAnswer } from '../tokens-answer.ts';
import { authenticationResponse } from './passkey-shapes.ts';

export const passkeyLogin = route({
  method: 'POST',
  path: '/api/auth/passkeys/login',
  door: 'public',
  ownSite: true,
  id: 'passkey_login',
  summary: 'Log in with a passkey',
  description: 'The authenticator has verified the user: the session has a second factor, and none is asked.',
  body: jsonBody({ response: authenticationResponse }),
  answers: { 200: tokensAnswer },
  problems: ['invalid_credentials', 'email_unverified', 'rate_limited'],
  async handle(ctx, app, { response }) {
    const login = { response, client: clientOf(ctx), guest: await guestAt(ctx, app) };
    answerSignIn(ctx, app, await app.auth.passkeys.login(login));
  },
});
