import { callerOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { clientOf } from './answer.ts';

export const requestVerification: Route = {
  method: 'POST',
  path: '/api/auth/email/verify/request',
  door: 'session',
  summary: "Have a mail sent with which the caller's address can be confirmed",
  body: 'none',
  async handle(ctx, app) {
    await app.auth.requestVerification(callerOf(ctx), clientOf(ctx, app));
    ctx.body = null;
    ctx.status = 202;
  },
};
