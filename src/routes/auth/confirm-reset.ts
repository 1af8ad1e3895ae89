import type { Route } from '../../http/route.ts';
import { clientOf } from './answer.ts';
import { password, readBody, token } from './body.ts';

export const confirmReset: Route = {
  method: 'POST',
  path: '/api/auth/password/reset/confirm',
  door: 'public',
  summary: 'Set a new password with the token of a mail, which ends all sessions',
  body: 'json',
  async handle(ctx, app) {
    const body = await readBody(ctx, app, { token, password });
    await app.auth.confirmReset({ ...body, client: clientOf(ctx, app) });
    ctx.status = 204;
  },
};
