import { z } from 'zod';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { token } from '../fields.ts';
import { answerIssued, tokensAnswer } from '../tokens-answer.ts';
import { proofCode } from './proof.ts';

export const answerChallenge = route({
  method: 'POST',
  path: '/api/auth/challenge',
  door: 'public',
  ownSite: true,
  id: 'answer_challenge',
  summary: 'Finish a sign-in with the second factor',
  description: 'A challenge lasts for five minutes and takes five tries. A code works once.',
  body: jsonBody({
    challenge: token,
    method: z.enum(['totp', 'recovery'], 'expected `totp` or `recovery`'),
    code: proofCode,
  }),
  answers: { 200: tokensAnswer },
  problems: ['invalid_credentials', 'rate_limited'],
  async handle(ctx, app, body) {
    answerIssued(ctx, app, await app.auth.accounts.answerChallenge({ ...body, client: clientOf(ctx) }));
  },
});
