import { object } from '../../../describe/operation.ts';
import { route } from '../../define-route.ts';
import { apiKey, keyActorOf } from './key-answers.ts';

export const listKeys = route({
  method: 'GET',
  path: '/api/auth/keys',
  door: 'user',
  id: 'list_keys',
  summary: 'List your API keys; an admin lists all',
  answers: {
    200: {
      description: 'Newest first, at most 1,000.',
      shape: (scope) => object({ data: { type: 'array', items: apiKey(scope) } }),
    },
  },
  problems: [],
  async handle(ctx, app) {
    ctx.body = { data: await app.auth.apiKeys.list(keyActorOf(ctx)) };
  },
});
