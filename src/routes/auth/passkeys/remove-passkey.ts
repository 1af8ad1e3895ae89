import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { idInPath } from '../../records/request.ts';

export const removePasskey = route({
  method: 'DELETE',
  path: '/api/auth/passkeys/:id',
  door: 'user',
  id: 'remove_passkey',
  summary: 'Remove a passkey',
  description: 'The last way of a user to sign in stays.',
  answers: { 204: { description: 'Removed.' } },
  problems: ['last_credential', 'not_found'],
  async handle(ctx, app) {
    await app.auth.passkeys.remove(callerOf(ctx), idInPath(ctx), clientOf(ctx));
    ctx.status = 204;
  },
});
