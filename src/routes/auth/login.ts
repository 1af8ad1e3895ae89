import { z } from 'zod';
import { guestAt } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { password } from './fields.ts';
import { answerSignIn, signInAnswer } from './tokens-answer.ts';

export const login = route({
  method: 'POST',
  path: '/api/auth/login',
  isKept: true,
  door: 'public',
  ownSite: true,
  id: 'login',
  summary: 'Log in with an email and a password',
  description:
    'Starts a session: returns tokens for programs, and sets the session cookie for browsers. A user with a second factor gets a challenge instead.',
  body: jsonBody({ email: z.string('expected string'), password }),
  answers: { 200: signInAnswer },
  problems: ['invalid_credentials', 'email_unverified', 'rate_limited'],
  async handle(ctx, app, body) {
    answerSignIn(ctx, app, await app.auth.accounts.login({ ...body, client: clientOf(ctx) }, await guestAt(ctx, app)));
  },
});
