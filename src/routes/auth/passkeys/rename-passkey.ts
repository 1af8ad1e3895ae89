import { callerOf } from '../../../http/gate.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { idInPath } from '../../records/request.ts';
import { passkeyAnswer, passkeyName } from './passkey-shapes.ts';

export const renamePasskey = route({
  method: 'PATCH',
  path: '/api/auth/passkeys/:id',
  door: 'user',
  id: 'rename_passkey',
  summary: 'Rename a passkey',
  body: jsonBody({ name: passkeyName }),
  answers: { 200: passkeyAnswer('The passkey.') },
  problems: ['not_found'],
  async handle(ctx, app, body) {
    ctx.body = { data: await app.auth.passkeys.rename(callerOf(ctx), idInPath(ctx), body.name) };
  },
});
