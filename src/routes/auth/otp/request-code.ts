import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { email } from '../fields.ts';

export const requestCode = route({
  method: 'POST',
  path: '/api/auth/otp/request',
  door: 'public',
  id: 'request_code',
  summary: 'Mail a code and a link that sign in',
  description:
    'The response is the same whether or not the address has an account. 404 without `mail.otp` in the schema.',
  body: jsonBody({ email }),
  answers: { 202: { description: 'Accepted.' } },
  problems: ['not_found', 'rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.loginCodes.request(body.email, clientOf(ctx));
    ctx.body = null;
    ctx.status = 202;
  },
});
