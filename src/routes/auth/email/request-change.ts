import { z } from 'zod';
import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { problemOfError } from '../../../problem.ts';
import { route } from '../../define-route.ts';
import { jsonBody, withExample } from '../../json-body.ts';
import { email, password } from '../fields.ts';

export const requestEmailChange = route({
  method: 'POST',
  path: '/api/auth/email/change/request',
  door: 'user',
  id: 'request_email_change',
  summary: 'Mail a token that changes your email address',
  description:
    'Needs the password, or a code of a mail to the present address. The new address gets the token, and the present one a notice.',
  body: withExample(
    jsonBody({
      email,
      password: password.optional(),
      code: z.string('expected string').max(64, 'expected a code').optional(),
    }),
    { email: 'countess@example.com', password: 'lovelace and babbage' },
  ),
  answers: { 202: { description: 'Accepted, whether or not the new address has an account.' } },
  problems: ['invalid_credentials', 'not_found', 'rate_limited'],
  async handle(ctx, app, { email: newEmail, password: given, code }) {
    const request = { email: newEmail, proof: changeProof(given, code), client: clientOf(ctx) };
    await app.auth.emailChange.request(callerOf(ctx), request);
    ctx.body = null;
    ctx.status = 202;
  },
});

function changeProof(given: string | undefined, code: string | undefined) {
  if (given !== undefined && code === undefined) return { password: given };
  if (given === undefined && code !== undefined) return { code };
  const detail = 'expected `password` or `code`, one of them';
  throw problemOfError('validation_failed', { pointer: '', code: 'invalid_value', detail });
}
