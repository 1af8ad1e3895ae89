import { object } from '../../../describe/operation.ts';
import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { proofBody, proofOf } from './proof.ts';

export const confirmSignIn = route({
  method: 'POST',
  path: '/api/auth/confirm',
  door: 'user',
  id: 'confirm_sign_in',
  summary: 'Confirm that you are present',
  description:
    'Renews the time of the sign-in of this session, so that a rule may require a recent sign-in. A code makes it one with a second factor.',
  body: proofBody,
  answers: {
    200: {
      description: 'The time of the confirmation.',
      shape: () => object({ signed_in_at: { type: 'string', format: 'date-time' } }),
    },
  },
  problems: ['invalid_credentials', 'rate_limited'],
  async handle(ctx, app, body) {
    const signedInAt = await app.auth.stepUp.confirm(callerOf(ctx), proofOf(body), clientOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { signed_in_at: signedInAt };
  },
});
