import { callerOf } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { clearSessionCookie } from './tokens-answer.ts';

export const logout = route({
  method: 'POST',
  path: '/api/auth/logout',
  isKept: true,
  door: 'session',
  id: 'logout',
  summary: 'End the current session',
  description: 'Its tokens stop working on every node within a second.',
  answers: { 204: { description: 'Ended; the cookie is cleared.', headers: ['Set-Cookie'] } },
  problems: [],
  async handle(ctx, app) {
    await app.auth.accounts.logout(callerOf(ctx), clientOf(ctx));
    clearSessionCookie(ctx, app);
    ctx.status = 204;
  },
});
