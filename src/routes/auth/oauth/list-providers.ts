import { object, TEXT } from '../../../describe/operation.ts';
import { route } from '../../define-route.ts';

export const listProviders = route({
  method: 'GET',
  path: '/api/auth/providers',
  door: 'public',
  id: 'list_providers',
  summary: 'List the providers to sign in with',
  answers: {
    200: {
      description: 'In the order of the schema. `name` is that of the addresses, `title` is for people.',
      shape: (scope) =>
        object({
          data: { type: 'array', items: scope.define('SignInProvider', object({ name: TEXT, title: TEXT })) },
        }),
    },
  },
  problems: [],
  handle(ctx, app) {
    ctx.body = { data: app.auth.oauth.providers() };
  },
});
