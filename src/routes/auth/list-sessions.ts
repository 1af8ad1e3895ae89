import { ID_SCHEMA, object, type Shape, TIMESTAMP } from '../../describe/operation.ts';
import { callerOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';

const NULLABLE = { type: ['string', 'null'] };

const session: Shape = (scope) =>
  scope.define(
    'Session',
    object({
      id: ID_SCHEMA,
      created_at: TIMESTAMP,
      last_used_at: TIMESTAMP,
      user_agent: NULLABLE,
      ip: NULLABLE,
      current: { type: 'boolean', description: 'Whether this request belongs to it.' },
    }),
  );

export const listSessions = route({
  method: 'GET',
  path: '/api/auth/sessions',
  door: 'user',
  id: 'list_sessions',
  summary: 'List your sessions',
  answers: {
    200: {
      description: 'Newest first.',
      shape: (scope) => object({ data: { type: 'array', items: session(scope) } }),
    },
  },
  problems: [],
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: await app.auth.accounts.sessions(callerOf(ctx)) };
  },
});
