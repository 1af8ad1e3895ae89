import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { proofBody, proofOf } from './proof.ts';

export const removeTotp = route({
  method: 'DELETE',
  path: '/api/auth/totp',
  door: 'user',
  id: 'remove_totp',
  summary: 'Remove the second factor',
  description: 'Its recovery codes end with it. No session counts as one with a second factor any more.',
  body: proofBody,
  answers: { 204: { description: 'Removed.' } },
  problems: ['invalid_credentials', 'not_found', 'rate_limited'],
  async handle(ctx, app, body) {
    await app.auth.secondFactors.remove(callerOf(ctx), proofOf(body), clientOf(ctx));
    ctx.status = 204;
  },
});
