/** The descriptions that the routes of API keys share, and who asks. Not a route. */
import type { Context } from 'koa';
import { z } from 'zod';
import type { IssuedKey, KeyActor } from '../../../auth/auth.ts';
import { CREDENTIAL_NAME_LENGTH } from '../../../auth/credential-name.ts';
import {
  ID_SCHEMA,
  type Json,
  object,
  type RouteAnswer,
  type Shape,
  TEXT,
  TIMESTAMP,
} from '../../../describe/operation.ts';
import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { ACTIONS } from '../../../policy/types.ts';

const nullable = (schema: Json): Json => ({ anyOf: [schema, { type: 'null' }] });
const LIST_OF_TEXTS: Json = { type: 'array', items: TEXT };
const KEY_LIMIT: Json = {
  type: 'object',
  additionalProperties: { type: 'array', items: { enum: ACTIONS } },
  description: 'Actions by collection, or by `*` for every collection.',
};

export const apiKey: Shape = (scope) =>
  scope.define(
    'ApiKey',
    object({
      id: ID_SCHEMA,
      name: TEXT,
      roles: LIST_OF_TEXTS,
      publishable: { type: 'boolean', description: 'Pages may hold it: its bearer is a guest.' },
      limit: nullable(KEY_LIMIT),
      addresses: nullable(LIST_OF_TEXTS),
      origins: nullable(LIST_OF_TEXTS),
      expires_at: nullable(TIMESTAMP),
      last_used_at: nullable(TIMESTAMP),
      created_at: TIMESTAMP,
      created_by: nullable(ID_SCHEMA),
      prefix: { ...TEXT, description: 'The text before the secret.' },
    }),
  );

export const shownKey = (description: string): RouteAnswer => ({
  description,
  shape: (scope) => object({ data: apiKey(scope) }),
});

export const issuedKey = (description: string): RouteAnswer => ({
  description,
  shape: (scope) =>
    object({ data: apiKey(scope), secret: { ...TEXT, description: 'The key; it is shown this once.' } }),
});

export const keyActorOf = (ctx: Context): KeyActor => ({ caller: callerOf(ctx), client: clientOf(ctx) });

/** No cache keeps the secret. */
export function sendSecret(ctx: Context, { data, secret }: IssuedKey): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = { data, secret };
}

// ---------------------------------------------------------------- bodies

const textList = (what: string) => z.array(z.string(`expected ${what}`)).max(100, 'expected at most 100');

/** The auth room checks it, for the command line too. */
export const keyName = z.string('expected string').meta(CREDENTIAL_NAME_LENGTH);
export const keyLimit = z
  .record(
    z.string(),
    z.array(z.enum(ACTIONS, `expected one of ${ACTIONS.join(', ')}`)),
    'expected actions by collection',
  )
  .nullable()
  .optional();
export const expiresAt = z.string('expected a datetime').nullable().optional();
export const keyRoles = textList('the name of a role').optional();
export const addresses = textList('an address or a range').nullable().optional();
export const pageOrigins = textList('an origin').nullable().optional();
