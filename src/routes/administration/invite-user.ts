import { z } from 'zod';
import { email } from '../auth/fields.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { administratorOf } from './administrator.ts';
import { invitedValues } from './invited-values.ts';

export const inviteUser = route({
  method: 'POST',
  path: '/api/users/invite',
  door: 'user',
  id: 'invite_user',
  summary: 'Invite a person by mail',
  description:
    'For each role, you need one that assigns it. `data`: fields of the user, by the rules of an update. Sent again, it replaces the former.',
  body: jsonBody({
    email,
    roles: z.array(z.string('expected the name of a role')).max(100, 'expected at most 100 roles'),
    data: z.record(z.string(), z.unknown(), 'expected an object').optional(),
  }),
  answers: { 202: { description: 'Accepted. The invitation lasts for seven days.' } },
  problems: ['email_taken', 'rate_limited'],
  async handle(ctx, app, { data = {}, ...invite }) {
    const by = administratorOf(ctx);
    await app.auth.invitations.check(invite, by);
    const values = await invitedValues(ctx, app, { ...invite, data });
    await app.auth.invitations.invite({ ...invite, values }, by);
    ctx.body = null;
    ctx.status = 202;
  },
});
