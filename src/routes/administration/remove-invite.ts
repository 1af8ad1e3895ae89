import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';
import { administratorOf } from './administrator.ts';

export const removeInvite = route({
  method: 'DELETE',
  path: '/api/users/invites/:id',
  door: 'user',
  id: 'remove_invite',
  summary: 'Take an invitation back',
  answers: { 204: { description: 'Its token opens nothing any more.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    await app.auth.invitations.remove(idInPath(ctx), administratorOf(ctx));
    ctx.status = 204;
  },
});
