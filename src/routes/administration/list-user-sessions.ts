import { object } from '../../describe/operation.ts';
import { foreignSession } from '../auth/session-shape.ts';
import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';

export const listUserSessions = route({
  method: 'GET',
  path: '/api/users/:id/sessions',
  door: 'admin',
  id: 'list_user_sessions',
  summary: 'List the sessions of a user',
  answers: {
    200: {
      description: 'Newest first.',
      shape: (scope) => object({ data: { type: 'array', items: foreignSession(scope) } }),
    },
  },
  problems: ['not_found'],
  async handle(ctx, app) {
    const data = await app.auth.admin.sessionsOf(idInPath(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data };
  },
});
