import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { passkeyAnswer, passkeyName, registrationResponse } from './passkey-shapes.ts';

export const addPasskey = route({
  method: 'POST',
  path: '/api/auth/passkeys',
  door: 'user',
  id: 'add_passkey',
  summary: 'Register a passkey',
  description: 'The authenticator must have verified the user. The user gets a mail.',
  body: jsonBody({ name: passkeyName, response: registrationResponse }),
  answers: { 201: passkeyAnswer('The passkey.') },
  problems: ['too_many'],
  async handle(ctx, app, body) {
    const data = await app.auth.passkeys.add(callerOf(ctx), { ...body, client: clientOf(ctx) });
    ctx.status = 201;
    ctx.body = { data };
  },
});
