import { route } from '../../define-route.ts';
import { idOf } from '../../records/request.ts';
import { actorOf } from './key-answers.ts';

export const revokeKey = route({
  method: 'DELETE',
  path: '/api/auth/keys/:id',
  door: 'user',
  id: 'revoke_key',
  summary: 'Revoke an API key',
  description: 'It opens nothing on any node within a second.',
  answers: { 204: { description: 'Revoked.' } },
  problems: ['not_found'],
  async handle(ctx, app) {
    await app.auth.apiKeys.revoke(idOf(ctx), actorOf(ctx));
    ctx.status = 204;
  },
});
