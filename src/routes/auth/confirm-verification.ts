import type { Route } from '../../http/route.ts';
import { clientOf } from './answer.ts';
import { readBody, token } from './body.ts';

export const confirmVerification: Route = {
  method: 'POST',
  path: '/api/auth/email/verify/confirm',
  door: 'public',
  summary: 'Confirm an address with the token of a mail',
  body: 'json',
  async handle(ctx, app) {
    const body = await readBody(ctx, app, { token });
    await app.auth.confirmVerification({ ...body, client: clientOf(ctx, app) });
    ctx.status = 204;
  },
};
