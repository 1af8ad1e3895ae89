import { z } from 'zod';
import { user } from '../../describe/collection-schemas.ts';
import { object } from '../../describe/operation.ts';
import { email, newPassword } from '../auth/fields.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { administratorOf } from './administrator.ts';

export const addUser = route({
  method: 'POST',
  path: '/api/auth/users',
  door: 'admin',
  id: 'add_user',
  summary: 'Create an account for another person',
  description: 'Without a password, the user sets one by a reset. `verified`: the address counts as proved.',
  body: jsonBody({
    email,
    password: newPassword.optional(),
    roles: z.array(z.string('expected the name of a role')).max(100, 'expected at most 100 roles'),
    verified: z.boolean('expected bool').optional(),
  }),
  answers: { 201: { description: 'The user.', shape: (scope) => object({ user: user(scope) }) } },
  problems: ['email_taken'],
  async handle(ctx, app, { verified: isVerified = false, ...added }) {
    const made = await app.auth.admin.addUser({ ...added, isVerified }, administratorOf(ctx));
    ctx.status = 201;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { user: made };
  },
});
