import { object } from '../../../describe/operation.ts';
import { callerOf } from '../../../http/gate.ts';
import { route } from '../../define-route.ts';
import { passkey } from './passkey-shapes.ts';

export const listPasskeys = route({
  method: 'GET',
  path: '/api/auth/passkeys',
  door: 'user',
  id: 'list_passkeys',
  summary: 'List your passkeys',
  answers: {
    200: { description: 'Newest first.', shape: (scope) => object({ data: { type: 'array', items: passkey(scope) } }) },
  },
  problems: [],
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: await app.auth.passkeys.list(callerOf(ctx)) };
  },
});
