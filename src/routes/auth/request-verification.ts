import { callerOf } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';

export const requestVerification = route({
  method: 'POST',
  path: '/api/auth/email/verify/request',
  door: 'user',
  id: 'request_verification',
  summary: 'Mail a token that verifies your email address',
  answers: { 202: { description: 'Accepted.' } },
  problems: ['rate_limited'],
  async handle(ctx, app) {
    await app.auth.recovery.requestVerification(callerOf(ctx), clientOf(ctx));
    ctx.body = null;
    ctx.status = 202;
  },
});
