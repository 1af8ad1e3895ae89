import { z } from 'zod';
import { MOST_OVERLAP } from '../../../auth/api-keys/key-requests.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { idInPath } from '../../records/request.ts';
import { issuedKey, keyActorOf, sendSecret } from './key-answers.ts';

const EXPECTED_SECONDS = `expected seconds from 0 to ${MOST_OVERLAP}`;

export const rotateKey = route({
  method: 'POST',
  path: '/api/auth/keys/:id/rotate',
  door: 'user',
  id: 'rotate_key',
  summary: 'Give an API key a new secret',
  description:
    'The present secret stays good for `overlap` seconds, and former ones for theirs. Without an overlap, all of them end at once.',
  body: jsonBody({
    overlap: z.int(EXPECTED_SECONDS).min(0, EXPECTED_SECONDS).max(MOST_OVERLAP, EXPECTED_SECONDS).optional(),
  }),
  answers: { 200: issuedKey('The key, and its new secret.') },
  problems: ['not_found', 'too_many'],
  async handle(ctx, app, { overlap = 0 }) {
    sendSecret(ctx, await app.auth.apiKeys.rotate(idInPath(ctx), overlap, keyActorOf(ctx)));
  },
});
