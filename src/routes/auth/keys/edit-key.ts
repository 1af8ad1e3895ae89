import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { idInPath } from '../../records/request.ts';
import { expiresAt, keyActorOf, keyLimit, keyName, shownKey } from './key-answers.ts';

export const editKey = route({
  method: 'PATCH',
  path: '/api/auth/keys/:id',
  door: 'user',
  id: 'update_key',
  summary: 'Rename an API key, or narrow it',
  description: 'The end can only become earlier, and the limit narrower.',
  body: jsonBody({ name: keyName.optional(), limit: keyLimit, expires_at: expiresAt }),
  answers: { 200: shownKey('The key after the change.') },
  problems: ['not_found'],
  async handle(ctx, app, body) {
    ctx.body = { data: await app.auth.apiKeys.edit(idInPath(ctx), body, keyActorOf(ctx)) };
  },
});
