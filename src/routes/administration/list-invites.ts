import { ID_SCHEMA, object, type Shape, TEXT, TIMESTAMP } from '../../describe/operation.ts';
import { route } from '../define-route.ts';
import { administratorOf } from './administrator.ts';

const invitation: Shape = (scope) =>
  scope.define(
    'Invitation',
    object({
      id: ID_SCHEMA,
      email: TEXT,
      roles: { type: 'array', items: TEXT },
      data: { type: 'object', description: 'Fields of the user.' },
      created_at: TIMESTAMP,
      expires_at: TIMESTAMP,
      created_by: ID_SCHEMA,
    }),
  );

export const listInvites = route({
  method: 'GET',
  path: '/api/users/invites',
  door: 'user',
  id: 'list_invites',
  summary: 'List your open invitations; an admin lists all',
  answers: {
    200: {
      description: 'Newest first, at most 1,000.',
      shape: (scope) => object({ data: { type: 'array', items: invitation(scope) } }),
    },
  },
  problems: [],
  async handle(ctx, app) {
    const data = await app.auth.invitations.list(administratorOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data };
  },
});
