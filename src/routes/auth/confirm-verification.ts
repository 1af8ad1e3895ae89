import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { token } from './fields.ts';

export const confirmVerification = route({
  method: 'POST',
  path: '/api/auth/email/verify/confirm',
  door: 'optional',
  id: 'confirm_verification',
  summary: 'Verify an email address with a token from a mail',
  description:
    'A token works once, within an hour; another one is `validation_failed`. Without a session of the account, the ways to sign in that were ' +
    'added to it end, but for the password.',
  body: jsonBody({ token }),
  answers: { 204: { description: 'Verified.' } },
  problems: ['rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.recovery.confirmVerification(body.token, ctx.state.caller, clientOf(ctx));
    ctx.status = 204;
  },
});
