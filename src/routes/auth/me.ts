import { callerOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';

export const me: Route = {
  method: 'GET',
  path: '/api/auth/me',
  door: 'session',
  summary: 'Who the caller is',
  body: 'none',
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { user: await app.auth.me(callerOf(ctx)) };
  },
};
