import { route } from '../../define-route.ts';
import { idInPath } from '../../records/request.ts';
import { keyActorOf } from './key-answers.ts';

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
    await app.auth.apiKeys.revoke(idInPath(ctx), keyActorOf(ctx));
    ctx.status = 204;
  },
});
