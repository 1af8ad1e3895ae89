import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';
import { administratorOf } from './administrator.ts';

export const resetSecondFactor = route({
  method: 'POST',
  path: '/api/users/:id/second-factor/reset',
  door: 'admin',
  id: 'reset_second_factor',
  summary: 'Remove the second factor of a user who has lost it',
  description: 'Its recovery codes end with it, and the user gets a mail. A user without one is 404.',
  answers: { 204: { description: 'Removed.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    await app.auth.admin.resetSecondFactorById(idInPath(ctx), administratorOf(ctx));
    ctx.status = 204;
  },
});
