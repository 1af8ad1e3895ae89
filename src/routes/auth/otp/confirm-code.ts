import { z } from 'zod';
import { guestAt } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { problemOfError } from '../../../problem.ts';
import { route } from '../../define-route.ts';
import { jsonBody, withExample } from '../../json-body.ts';
import { token } from '../fields.ts';
import { answerSignIn, signInAnswer } from '../tokens-answer.ts';

export const confirmCode = route({
  method: 'POST',
  path: '/api/auth/otp/confirm',
  isKept: true,
  door: 'public',
  ownSite: true,
  id: 'confirm_code',
  summary: 'Log in with a code or a token from a mail',
  description:
    'The body has `email` and `code`, or `token` alone. A code has five tries within ten minutes, and works once. It verifies the address.',
  body: withExample(
    jsonBody({
      email: z.string('expected string').optional(),
      code: z.string('expected string').max(64, 'expected a code').optional(),
      token: token.optional(),
    }),
    { email: 'ada@example.com', code: '123456' },
  ),
  answers: { 200: signInAnswer },
  problems: ['invalid_credentials', 'not_found', 'rate_limited'],
  async handle(ctx, app, { email, code, token: given }) {
    const { loginCodes } = app.auth;
    const request = { client: clientOf(ctx), guest: await guestAt(ctx, app) };
    if (given !== undefined && email === undefined && code === undefined)
      return answerSignIn(ctx, app, await loginCodes.confirmToken(given, request));
    if (given !== undefined || email === undefined || code === undefined) {
      const detail = 'expected `email` and `code`, or `token` alone';
      throw problemOfError('validation_failed', { pointer: '', code: 'invalid_value', detail });
    }
    answerSignIn(ctx, app, await loginCodes.confirmCode({ email, code }, request));
  },
});
