import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';

export const unlinkIdentity = route({
  method: 'DELETE',
  path: '/api/auth/identities/:provider',
  door: 'user',
  id: 'unlink_identity',
  summary: 'Unlink your account from a provider',
  description: 'The last way to sign in cannot be removed.',
  answers: { 204: { description: 'Unlinked.' } },
  problems: ['not_found', 'last_credential'],
  async handle(ctx, app) {
    await app.auth.oauth.unlink(callerOf(ctx), ctx.params.provider ?? '', clientOf(ctx));
    ctx.status = 204;
  },
});
