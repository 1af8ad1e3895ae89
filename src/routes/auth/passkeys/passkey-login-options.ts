import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { webauthnOptions } from './passkey-shapes.ts';

export const passkeyLoginOptions = route({
  method: 'POST',
  path: '/api/auth/passkeys/login/options',
  door: 'public',
  id: 'passkey_login_options',
  summary: 'Get the options to log in with a passkey',
  description: 'For `navigator.credentials.get`. No email is needed: the browser offers the passkeys of the site.',
  answers: { 200: webauthnOptions },
  problems: ['rate_limited'],
  async handle(ctx, app) {
    const options = await app.auth.passkeys.requestOptions(clientOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = options;
  },
});
