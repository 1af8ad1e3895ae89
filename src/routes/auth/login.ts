import { z } from 'zod';
import { checkOrigin } from '../../http/origins.ts';
import type { Route } from '../../http/route.ts';
import { answerIssued, clientOf } from './answer.ts';
import { password, readBody } from './body.ts';

export const login: Route = {
  method: 'POST',
  path: '/api/auth/login',
  door: 'public',
  summary: 'Get tokens and the session cookie for an email and a password',
  body: 'json',
  async handle(ctx, app) {
    // Another site must not log its visitor in as somebody else (login CSRF).
    checkOrigin(ctx, { origins: app.schema.origins, baseUrl: app.config.baseUrl });
    const body = await readBody(ctx, app, { email: z.string('expected a text'), password });
    answerIssued(ctx, app, await app.auth.login({ ...body, client: clientOf(ctx, app) }));
  },
};
