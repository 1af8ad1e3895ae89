import { callerOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';

export const listSessions: Route = {
  method: 'GET',
  path: '/api/auth/sessions',
  door: 'session',
  summary: "List the caller's sessions, newest first",
  body: 'none',
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: await app.auth.sessions(callerOf(ctx)) };
  },
};
