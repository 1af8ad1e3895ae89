import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { token } from '../fields.ts';

export const confirmEmailChange = route({
  method: 'POST',
  path: '/api/auth/email/change/confirm',
  door: 'optional',
  id: 'confirm_email_change',
  summary: 'Change the email address with a token from a mail',
  description:
    'All sessions of the user end, but the one that sends it. A token works once, within an hour; another one is `validation_failed`. ' +
    'Without a session of the account, the next proof of the new address ends the ways to sign in that were added before.',
  body: jsonBody({ token }),
  answers: { 204: { description: 'Changed; the new address is verified.' } },
  problems: ['cross_origin', 'email_taken', 'rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.emailChange.confirm(body.token, ctx.state.caller, clientOf(ctx));
    ctx.status = 204;
  },
});
