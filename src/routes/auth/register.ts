import { user } from '../../describe/collection-schemas.ts';
import { object } from '../../describe/operation.ts';
import { guestAt } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { email, newPassword } from './fields.ts';

export const register = route({
  method: 'POST',
  path: '/api/auth/register',
  door: 'public',
  id: 'register',
  summary: 'Create an account with an email and a password',
  description:
    'The account gets the roles of registration and the defaults of the fields that the schema adds. It is not logged in.',
  body: jsonBody({ email, password: newPassword }),
  answers: { 201: { description: 'The user.', shape: (scope) => object({ user: user(scope) }) } },
  problems: ['registration_closed', 'email_taken', 'rate_limited'],
  async handle(ctx, app, body) {
    const created = await app.auth.accounts.register({ ...body, client: clientOf(ctx) }, await guestAt(ctx, app));
    ctx.status = 201;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { user: created };
  },
});
