import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { proofCode } from './proof.ts';
import { recoveryAnswer } from './recovery-answer.ts';

export const renewRecoveryCodes = route({
  method: 'POST',
  path: '/api/auth/totp/recovery',
  door: 'user',
  id: 'renew_recovery_codes',
  summary: 'Make ten new recovery codes',
  description: 'The codes before them work no longer.',
  body: jsonBody({ code: proofCode }),
  answers: { 200: recoveryAnswer },
  problems: ['invalid_credentials', 'rate_limited'],
  async handle(ctx, app, body) {
    const codes = await app.auth.secondFactors.renewRecovery(callerOf(ctx), body.code, clientOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { recovery_codes: codes };
  },
});
