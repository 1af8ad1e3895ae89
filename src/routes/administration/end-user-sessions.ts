import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';
import { administratorOf } from './administrator.ts';

export const endUserSessions = route({
  method: 'DELETE',
  path: '/api/users/:id/sessions',
  door: 'admin',
  id: 'end_user_sessions',
  summary: 'End all sessions of a user',
  answers: { 204: { description: 'Ended.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    await app.auth.admin.endSessionsOf(idInPath(ctx), administratorOf(ctx));
    ctx.status = 204;
  },
});
