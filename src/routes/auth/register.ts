import type { Route } from '../../http/route.ts';
import { clientOf } from './answer.ts';
import { email, password, readBody } from './body.ts';

export const register: Route = {
  method: 'POST',
  path: '/api/auth/register',
  door: 'public',
  summary: 'Make an account with an email and a password',
  body: 'json',
  async handle(ctx, app) {
    const body = await readBody(ctx, app, { email, password });
    const user = await app.auth.register({ ...body, client: clientOf(ctx, app) });
    ctx.status = 201;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { user };
  },
};
