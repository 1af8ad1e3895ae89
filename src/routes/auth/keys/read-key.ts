import { route } from '../../define-route.ts';
import { idInPath } from '../../records/request.ts';
import { keyActorOf, shownKey } from './key-answers.ts';

export const readKey = route({
  method: 'GET',
  path: '/api/auth/keys/:id',
  door: 'user',
  id: 'read_key',
  summary: 'Get one of your API keys; an admin gets any',
  answers: { 200: shownKey('The key, without its secret.') },
  problems: ['not_found'],
  async handle(ctx, app) {
    ctx.body = { data: await app.auth.apiKeys.read(idInPath(ctx), keyActorOf(ctx)) };
  },
});
