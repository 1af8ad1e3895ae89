import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { proofCode } from './proof.ts';
import { recoveryAnswer } from './recovery-answer.ts';

export const confirmTotp = route({
  method: 'POST',
  path: '/api/auth/totp/confirm',
  door: 'user',
  id: 'confirm_totp',
  summary: 'Confirm the authenticator by a code of it',
  description:
    'From now on, each sign-in asks for a code. This session counts as one with a second factor; others stay as they are.',
  body: jsonBody({ code: proofCode }),
  answers: { 200: recoveryAnswer },
  problems: ['invalid_credentials', 'too_many', 'rate_limited'],
  async handle(ctx, app, body) {
    const codes = await app.auth.secondFactors.confirm(callerOf(ctx), body.code, clientOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { recovery_codes: codes };
  },
});
