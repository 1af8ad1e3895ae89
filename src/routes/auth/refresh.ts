import { clientOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { token } from './fields.ts';
import { answerIssued, tokensOfAnyone } from './tokens-answer.ts';

export const refresh = route({
  method: 'POST',
  path: '/api/auth/token/refresh',
  isKept: true,
  door: 'public',
  ownSite: true,
  id: 'refresh',
  summary: 'Exchange a refresh token for new tokens',
  description: 'A refresh token works once. A second use ends its session, unless it is a retry within 10 seconds.',
  body: jsonBody({ refresh_token: token }),
  answers: { 200: tokensOfAnyone },
  problems: ['invalid_token', 'refresh_reused', 'rate_limited'],
  async handle(ctx, app, body) {
    answerIssued(ctx, app, await app.auth.accounts.refresh(body.refresh_token, clientOf(ctx)));
  },
});
