import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';
import { administratorOf } from './administrator.ts';

export const disableUser = route({
  method: 'POST',
  path: '/api/users/:id/disable',
  door: 'admin',
  id: 'disable_user',
  summary: 'Disable a user',
  description:
    'All sessions of the user end within a second on every node, its API keys open nothing, and it cannot log in.',
  answers: { 204: { description: 'Done.' } },
  problems: ['not_found', 'last_admin'],
  async handle(ctx, app) {
    await app.auth.admin.setDisabledById(idInPath(ctx), true, administratorOf(ctx));
    ctx.status = 204;
  },
});
