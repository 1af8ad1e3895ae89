/** The routes that every service has: accounts, sessions, OAuth, and what stands outside `/api`. */
import type { ProblemCode } from '../problem.ts';
import type { Schema } from '../schema/model.ts';
import { type Json, json, operation, ref } from './openapi-parts.ts';

const BOTH = [{ bearer: [] }, { cookie: [] }];
const PUBLIC: readonly Json[] = [];
const EMAIL: Json = { type: 'string', format: 'email' };
const PASSWORD: Json = { type: 'string', minLength: 8, maxLength: 256 };

/** All properties are required. */
const object = (properties: Json): Json => ({
  type: 'object',
  required: Object.keys(properties),
  additionalProperties: false,
  properties,
});
const body = (properties: Json): Json => ({ required: true, ...json(object(properties)) });
const tokens = {
  description: 'Tokens; the session cookie is set.',
  headers: { 'Set-Cookie': { schema: { type: 'string' } } },
  ...json(ref('Tokens')),
};
const USER: Json = json(object({ user: ref('Users') }));
const BODY_FAULTS: readonly ProblemCode[] = [
  'malformed_json',
  'too_large',
  'unsupported_media_type',
  'validation_failed',
  'rate_limited',
  'unavailable',
];

interface Described {
  readonly id: string;
  readonly summary: string;
  readonly open?: boolean;
  readonly body?: Json;
  readonly parameters?: readonly Json[];
  readonly success: Json;
  readonly problems: readonly ProblemCode[];
}

function auth({ id, summary, open = false, body: properties, parameters, success, problems }: Described): Json {
  return operation({
    operationId: id,
    tags: ['auth'],
    summary,
    security: open ? PUBLIC : BOTH,
    ...(parameters === undefined ? {} : { parameters }),
    ...(properties === undefined ? {} : { requestBody: body(properties) }),
    success,
    problems: properties === undefined ? problems : [...problems, ...BODY_FAULTS],
  });
}

const none = (status: number, description: string): Json => ({ [status]: { description } });
const path = (name: string): Json => ({ name, in: 'path', required: true, schema: { type: 'string' } });
const text: Json = { type: 'string' };

export function authSchemas(): Json {
  const instant = { type: 'string', format: 'date-time' };
  const nullable = { type: ['string', 'null'] };
  return {
    Tokens: object({
      access_token: text,
      token_type: { const: 'Bearer' },
      expires_in: { type: 'integer', description: 'Seconds.' },
      refresh_token: text,
      refresh_expires_in: { type: 'integer', description: 'Seconds.' },
      user: ref('Users'),
    }),
    Session: object({
      id: ref('Id'),
      created_at: instant,
      last_used_at: instant,
      user_agent: nullable,
      ip: nullable,
      current: { type: 'boolean' },
    }),
  };
}

export function authPaths({ oauth }: Pick<Schema, 'oauth'>): Json {
  return {
    '/api/auth/register': {
      post: auth({
        id: 'register',
        summary: 'Makes an account.',
        open: true,
        body: { email: EMAIL, password: PASSWORD },
        success: { 201: { description: 'The user.', ...USER } },
        problems: ['email_taken'],
      }),
    },
    '/api/auth/login': {
      post: auth({
        id: 'login',
        summary: 'Begins a session.',
        open: true,
        body: { email: EMAIL, password: text },
        success: { 200: tokens },
        problems: ['invalid_credentials', 'cross_origin'],
      }),
    },
    '/api/auth/token/refresh': {
      post: auth({
        id: 'refresh',
        summary: 'Spends a refresh token for new tokens.',
        open: true,
        body: { refresh_token: text },
        success: { 200: tokens },
        problems: ['invalid_token', 'refresh_reused'],
      }),
    },
    '/api/auth/logout': {
      post: auth({
        id: 'logout',
        summary: 'Ends the session.',
        success: none(204, 'Ended; the cookie is cleared.'),
        problems: ['unauthenticated', 'cross_origin'],
      }),
    },
    '/api/auth/me': {
      get: auth({
        id: 'me',
        summary: 'Who is asking.',
        success: { 200: { description: 'The user.', ...USER } },
        problems: ['unauthenticated'],
      }),
    },
    '/api/auth/sessions': {
      get: auth({
        id: 'list_sessions',
        summary: 'The sessions of the caller.',
        success: {
          200: { description: 'Newest first.', ...json(object({ data: { type: 'array', items: ref('Session') } })) },
        },
        problems: ['unauthenticated'],
      }),
    },
    '/api/auth/sessions/{id}': {
      delete: auth({
        id: 'end_session',
        summary: 'Ends a session of the caller.',
        parameters: [path('id')],
        success: none(204, 'Ended.'),
        problems: ['unauthenticated', 'cross_origin', 'not_found'],
      }),
    },
    '/api/auth/password': {
      post: auth({
        id: 'change_password',
        summary: 'Changes the password; all other sessions end.',
        body: { password: text, new_password: PASSWORD },
        success: none(204, 'Changed.'),
        problems: ['invalid_credentials', 'unauthenticated', 'cross_origin'],
      }),
    },
    '/api/auth/password/reset/request': {
      post: auth({
        id: 'request_reset',
        summary: 'Sends a mail by which the password can be set.',
        open: true,
        body: { email: EMAIL },
        success: none(202, 'Always.'),
        problems: [],
      }),
    },
    '/api/auth/password/reset/confirm': {
      post: auth({
        id: 'confirm_reset',
        summary: 'Sets the password; all sessions end.',
        open: true,
        body: { token: text, password: PASSWORD },
        success: none(204, 'Set.'),
        problems: ['invalid_token'],
      }),
    },
    '/api/auth/email/verify/request': {
      post: auth({
        id: 'request_verification',
        summary: 'Sends a mail that proves the address.',
        success: none(202, 'On its way.'),
        problems: ['unauthenticated', 'cross_origin', 'rate_limited'],
      }),
    },
    '/api/auth/email/verify/confirm': {
      post: auth({
        id: 'confirm_verification',
        summary: 'Proves the address.',
        open: true,
        body: { token: text },
        success: none(204, 'Proved.'),
        problems: ['invalid_token'],
      }),
    },
    ...(oauth.size === 0 ? {} : oauthPaths([...oauth.keys()])),
  };
}

function oauthPaths(providers: readonly string[]): Json {
  const provider = { ...path('provider'), schema: { type: 'string', enum: providers } };
  const redirectTo = {
    name: 'redirect_to',
    in: 'query',
    schema: text,
    description: 'A path that starts with one `/`, or a URL in a configured origin.',
  };
  const back = ['code', 'state', 'error', 'error_description', 'iss'].map((name) => ({
    name,
    in: 'query',
    schema: text,
  }));
  return {
    '/api/auth/oauth/{provider}/start': {
      get: auth({
        id: 'oauth_start',
        summary: 'Sends the browser to the provider.',
        open: true,
        parameters: [provider, redirectTo],
        success: none(302, 'To the provider.'),
        problems: ['invalid_parameter', 'not_found', 'unavailable'],
      }),
    },
    '/api/auth/oauth/{provider}/callback': {
      get: auth({
        id: 'oauth_callback',
        summary: 'Takes the browser back from the provider.',
        open: true,
        parameters: [provider, ...back],
        success: { 200: tokens, 302: { description: 'To `redirect_to`, with the session cookie.' } },
        problems: ['oauth_failed', 'oauth_denied', 'account_exists', 'not_found', 'unavailable'],
      }),
    },
  };
}

export function systemPaths(): Json {
  const system = (id: string, summary: string, success: Json, problems: readonly ProblemCode[] = []): Json => ({
    get: operation({ operationId: id, tags: ['system'], summary, security: PUBLIC, success, problems }),
  });
  const keys = object({ keys: { type: 'array', items: { type: 'object' } } });
  return {
    '/.well-known/jwks.json': system('jwks', 'The keys that access tokens are verified with.', {
      200: { description: 'A JWK set.', ...json(keys) },
    }),
    '/healthz': system('healthz', 'Alive.', none(200, 'Alive.')),
    '/readyz': system('readyz', 'The database is reachable and its schema current.', none(200, 'Ready.'), [
      'unavailable',
    ]),
    '/metrics': system('metrics', 'Prometheus metrics.', none(200, 'Text.')),
    '/openapi.json': system('openapi', 'This document.', none(200, 'OpenAPI 3.1.')),
  };
}
