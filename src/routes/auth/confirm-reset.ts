import { jsonBody } from '../body.ts';
import { route } from '../route.ts';
import { clientOf } from './answer.ts';
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
    await app.auth.confirmReset({ ...body, client: clientOf(ctx, app) });
    ctx.status = 204;
  },
});
