import { FACTOR_STATES } from '../../auth/auth.ts';
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
  answers: {
    200: {
      description: 'The user, and the second factor of the session; `required`: roles are left out until it has one.',
      shape: (scope) => object({ user: user(scope), second_factor: { enum: FACTOR_STATES } }),
    },
  },
  problems: [],
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = await app.auth.accounts.me(callerOf(ctx));
  },
});
