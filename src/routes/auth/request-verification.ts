import { callerOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { clientOf } from './tokens-answer.ts';

export const requestVerification = route({
  method: 'POST',
  path: '/api/auth/email/verify/request',
  door: 'session',
  id: 'request_verification',
  summary: 'Mail a token that verifies your email address',
  answers: { 202: { description: 'Accepted.' } },
  problems: ['rate_limited'],
  async handle(ctx, app) {
    await app.auth.requestVerification(callerOf(ctx), clientOf(ctx, app));
    ctx.body = null;
    ctx.status = 202;
  },
});
