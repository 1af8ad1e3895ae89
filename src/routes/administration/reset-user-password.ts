import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';
import { administratorOf } from './administrator.ts';

export const resetUserPassword = route({
  method: 'POST',
  path: '/api/users/:id/password-reset',
  door: 'admin',
  id: 'reset_user_password',
  summary: 'Mail a user a token that sets a new password',
  description: 'The present password stays until the token is used. A disabled user gets no mail.',
  answers: { 202: { description: 'Accepted.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    await app.auth.recovery.requestResetOf(idInPath(ctx), administratorOf(ctx));
    ctx.body = null;
    ctx.status = 202;
  },
});
