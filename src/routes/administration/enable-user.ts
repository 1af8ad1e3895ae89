import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';
import { administratorOf } from './administrator.ts';

export const enableUser = route({
  method: 'POST',
  path: '/api/users/:id/enable',
  door: 'admin',
  id: 'enable_user',
  summary: 'Enable a user',
  description: 'The user can log in again.',
  answers: { 204: { description: 'Done.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    await app.auth.admin.setDisabledById(idInPath(ctx), false, administratorOf(ctx));
    ctx.status = 204;
  },
});
