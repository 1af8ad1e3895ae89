import { callerOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { clientOf } from './answer.ts';
import { password, readBody } from './body.ts';

export const changePassword: Route = {
  method: 'POST',
  path: '/api/auth/password',
  door: 'session',
  summary: 'Change the password, which needs the present one and ends all other sessions',
  body: 'json',
  async handle(ctx, app) {
    const body = await readBody(ctx, app, { password, new_password: password });
    const request = { password: body.password, newPassword: body.new_password, client: clientOf(ctx, app) };
    await app.auth.changePassword(callerOf(ctx), request);
    ctx.status = 204;
  },
};
