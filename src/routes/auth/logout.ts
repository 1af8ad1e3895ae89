import { callerOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { clearSessionCookie, clientOf } from './answer.ts';

export const logout: Route = {
  method: 'POST',
  path: '/api/auth/logout',
  door: 'session',
  summary: 'End the session, its tokens and its cookie',
  body: 'none',
  async handle(ctx, app) {
    await app.auth.logout(callerOf(ctx), clientOf(ctx, app));
    clearSessionCookie(ctx, app);
    ctx.status = 204;
  },
};
