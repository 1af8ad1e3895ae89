import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { newPassword, token } from './fields.ts';

export const confirmReset = route({
  method: 'POST',
  path: '/api/auth/password/reset/confirm',
  door: 'public',
  id: 'confirm_reset',
  summary: 'Set a new password with a token from a mail',
  description: 'All sessions of the user end. A token works once, within an hour; another one is `validation_failed`.',
  body: jsonBody({ token, password: newPassword }),
  answers: { 204: { description: 'Set.' } },
  problems: ['rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.recovery.confirmReset({ ...body, client: clientOf(ctx) });
    ctx.status = 204;
  },
});
