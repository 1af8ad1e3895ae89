import { callerOf } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { newPassword, password } from './fields.ts';

export const changePassword = route({
  method: 'POST',
  path: '/api/auth/password',
  door: 'user',
  id: 'change_password',
  summary: 'Change the password',
  description: 'Needs the current password. All other sessions of the user end.',
  body: jsonBody({ password, new_password: newPassword }),
  answers: { 204: { description: 'Changed.' } },
  problems: ['invalid_credentials', 'rate_limited'],
  async handle(ctx, app, body) {
    const request = { password: body.password, newPassword: body.new_password, client: clientOf(ctx) };
    await app.auth.recovery.changePassword(callerOf(ctx), request);
    ctx.status = 204;
  },
});
