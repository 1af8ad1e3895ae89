import { z } from 'zod';
import { route } from '../../define-route.ts';
import { jsonBody, withExample } from '../../json-body.ts';
import {
  addresses,
  expiresAt,
  issuedKey,
  keyActorOf,
  keyLimit,
  keyName,
  keyRoles,
  pageOrigins,
  sendSecret,
} from './key-answers.ts';

export const createKey = route({
  method: 'POST',
  path: '/api/auth/keys',
  door: 'user',
  id: 'create_key',
  summary: 'Create an API key',
  description:
    'For programs: the key is a bearer token with roles of its own, and ends with its maker. For each role, you need one that assigns it. ' +
    'The session must have the second factor of its user, where there is one.',
  body: withExample(
    jsonBody({
      name: keyName,
      roles: keyRoles,
      publishable: z.boolean('expected bool').optional(),
      limit: keyLimit,
      addresses,
      origins: pageOrigins,
      expires_at: expiresAt,
    }),
    ({ schema }) => ({
      name: 'nightly export',
      roles: [[...schema.roles.keys()][0]],
      limit: { '*': ['list', 'read'] },
    }),
  ),
  answers: { 201: issuedKey('The key, and its secret.') },
  problems: ['too_many'],
  async handle(ctx, app, body) {
    sendSecret(ctx, await app.auth.apiKeys.create(body, keyActorOf(ctx)));
    ctx.status = 201;
  },
});
