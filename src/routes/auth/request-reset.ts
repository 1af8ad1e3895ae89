import type { Route } from '../../http/route.ts';
import { clientOf } from './answer.ts';
import { email, readBody } from './body.ts';

export const requestReset: Route = {
  method: 'POST',
  path: '/api/auth/password/reset/request',
  door: 'public',
  summary: 'Have a mail sent with which a new password can be set; the answer is the same for every address',
  body: 'json',
  async handle(ctx, app) {
    const body = await readBody(ctx, app, { email });
    await app.auth.requestReset(body.email, clientOf(ctx, app));
    ctx.body = null;
    ctx.status = 202;
  },
};
