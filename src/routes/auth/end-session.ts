import { callerOf, notFound } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { parseUuid } from '../../policy/values.ts';
import { clearSessionCookie, clientOf } from './answer.ts';

export const endSession: Route = {
  method: 'DELETE',
  path: '/api/auth/sessions/:id',
  door: 'session',
  summary: "End one of the caller's sessions",
  body: 'none',
  async handle(ctx, app) {
    const caller = callerOf(ctx);
    const id = parseUuid(ctx.params.id ?? '');
    if (id === undefined) throw notFound();
    await app.auth.endSession(caller, id, clientOf(ctx, app));
    if (id === caller.sessionId) clearSessionCookie(ctx, app);
    ctx.status = 204;
  },
};
