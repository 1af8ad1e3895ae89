import { user } from '../../describe/collection-schemas.ts';
import { object } from '../../describe/operation.ts';
import { callerOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';

export const me = route({
  method: 'GET',
  path: '/api/auth/me',
  door: 'user',
  id: 'me',
  summary: 'Get the user that you are signed in as',
  answers: { 200: { description: 'The user.', shape: (scope) => object({ user: user(scope) }) } },
  problems: [],
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { user: await app.auth.accounts.me(callerOf(ctx)) };
  },
});
