import { checkOrigin } from '../../http/origins.ts';
import type { Route } from '../../http/route.ts';
import { answerIssued, clientOf } from './answer.ts';
import { readBody, token } from './body.ts';

export const refresh: Route = {
  method: 'POST',
  path: '/api/auth/token/refresh',
  door: 'public',
  summary: 'Get new tokens for a refresh token, which is spent by it',
  body: 'json',
  async handle(ctx, app) {
    checkOrigin(ctx, { origins: app.schema.origins, baseUrl: app.config.baseUrl });
    const body = await readBody(ctx, app, { refresh_token: token });
    answerIssued(ctx, app, await app.auth.refresh({ token: body.refresh_token, client: clientOf(ctx, app) }));
  },
};
