import { guestAt } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { newPassword, token } from '../auth/fields.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';

export const confirmInvite = route({
  method: 'POST',
  path: '/api/auth/invite/confirm',
  door: 'public',
  id: 'confirm_invite',
  summary: 'Accept an invitation with a token from a mail',
  description:
    'Makes the account, with a verified address; it is not logged in. A token works once; another one is `validation_failed`.',
  body: jsonBody({ token, password: newPassword }),
  answers: { 204: { description: 'Made.' } },
  problems: ['email_taken', 'unique_violation', 'rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.invitations.confirm({ ...body, client: clientOf(ctx) }, await guestAt(ctx, app));
    ctx.status = 204;
  },
});
