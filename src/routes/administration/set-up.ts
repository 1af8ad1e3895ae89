import { user } from '../../describe/collection-schemas.ts';
import { object } from '../../describe/operation.ts';
import { clientOf } from '../../http/request.ts';
import { email, newPassword, token } from '../auth/fields.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';

export const setUp = route({
  method: 'POST',
  path: '/api/auth/setup',
  door: 'public',
  id: 'set_up',
  summary: 'Make the first administrator',
  description:
    'With the token that `bylaw serve` prints while no enabled user is an admin. It works once, within an hour; all else is 404.',
  body: jsonBody({ token, email, password: newPassword }),
  answers: { 201: { description: 'The user.', shape: (scope) => object({ user: user(scope) }) } },
  problems: ['not_found', 'email_taken', 'rate_limited'],
  async handle(ctx, app, body) {
    const made = await app.auth.admin.setUp({ ...body, client: clientOf(ctx) });
    ctx.status = 201;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { user: made };
  },
});
