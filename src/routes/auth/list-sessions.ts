import { object } from '../../describe/operation.ts';
import { callerOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { ownSession } from './session-shape.ts';

export const listSessions = route({
  method: 'GET',
  path: '/api/auth/sessions',
  door: 'user',
  id: 'list_sessions',
  summary: 'List your sessions',
  answers: {
    200: {
      description: 'Newest first.',
      shape: (scope) => object({ data: { type: 'array', items: ownSession(scope) } }),
    },
  },
  problems: [],
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: await app.auth.accounts.sessions(callerOf(ctx)) };
  },
});
