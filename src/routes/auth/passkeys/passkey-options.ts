import { callerOf } from '../../../http/gate.ts';
import { route } from '../../define-route.ts';
import { webauthnOptions } from './passkey-shapes.ts';

export const passkeyOptions = route({
  method: 'POST',
  path: '/api/auth/passkeys/options',
  door: 'user',
  id: 'passkey_options',
  summary: 'Get the options to make a passkey',
  description:
    'For `navigator.credentials.create`. A session must have the second factor of its user, where there is one.',
  answers: { 200: webauthnOptions },
  problems: ['too_many'],
  async handle(ctx, app) {
    const options = await app.auth.passkeys.creationOptions(callerOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = options;
  },
});
