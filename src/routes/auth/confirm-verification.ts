import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { token } from './fields.ts';

export const confirmVerification = route({
  method: 'POST',
  path: '/api/auth/email/verify/confirm',
  door: 'public',
  id: 'confirm_verification',
  summary: 'Verify an email address with a token from a mail',
  description: 'A token works once, within an hour; another one is `validation_failed`.',
  body: jsonBody({ token }),
  answers: { 204: { description: 'Verified.' } },
  problems: ['rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.recovery.confirmVerification(body.token, clientOf(ctx));
    ctx.status = 204;
  },
});
