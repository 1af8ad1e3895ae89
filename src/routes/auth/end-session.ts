import { callerOf, notFoundProblem } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { parseUuid } from '../../policy/values.ts';
import { route } from '../define-route.ts';
import { clearSessionCookie } from './tokens-answer.ts';

export const endSession = route({
  method: 'DELETE',
  path: '/api/auth/sessions/:id',
  door: 'session',
  id: 'end_session',
  summary: 'End one of your sessions',
  answers: { 204: { description: 'Ended. The cookie is cleared where it was the current session.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    const caller = callerOf(ctx);
    const id = parseUuid(ctx.params.id ?? '');
    if (id === undefined) throw notFoundProblem();
    await app.auth.accounts.endSession(caller, id, clientOf(ctx));
    if (id === caller.sessionId) clearSessionCookie(ctx, app);
    ctx.status = 204;
  },
});
