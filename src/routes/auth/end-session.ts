import { callerOf } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';
import { clearSessionCookie } from './tokens-answer.ts';

export const endSession = route({
  method: 'DELETE',
  path: '/api/auth/sessions/:id',
  door: 'user',
  id: 'end_session',
  summary: 'End one of your sessions',
  answers: { 204: { description: 'Ended. The cookie is cleared where it was the current session.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    const caller = callerOf(ctx);
    const id = idInPath(ctx);
    await app.auth.accounts.endSession(caller, id, clientOf(ctx));
    if (id === caller.sessionId) clearSessionCookie(ctx, app);
    ctx.status = 204;
  },
});
