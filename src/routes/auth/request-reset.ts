import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { email } from './fields.ts';

export const requestReset = route({
  method: 'POST',
  path: '/api/auth/password/reset/request',
  door: 'public',
  id: 'request_reset',
  summary: 'Mail a token that sets a new password',
  description: 'The response is the same whether or not the address has an account.',
  body: jsonBody({ email }),
  answers: { 202: { description: 'Accepted.' } },
  problems: ['rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.recovery.requestReset(body.email, clientOf(ctx));
    ctx.body = null;
    ctx.status = 202;
  },
});
