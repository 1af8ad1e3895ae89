/** Every door, found in the list of routes: none opens without a credential, and none of a collection without a rule. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import { routes, servedRoutes } from '../../src/routes/index.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Collection, Schema } from '../../src/schema/model/model.ts';
import { NOBODY, outcomeOf } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';

/** A new route that needs no credential must be added here. */
const OPEN: readonly string[] = [
  'POST /api/auth/register',
  'POST /api/auth/login',
  'POST /api/auth/guest',
  'POST /api/auth/challenge',
  'POST /api/auth/passkeys/login/options',
  'POST /api/auth/passkeys/login',
  'POST /api/auth/token/refresh',
  'POST /api/auth/password/reset/request',
  'POST /api/auth/password/reset/confirm',
  'POST /api/auth/email/verify/confirm',
  'POST /api/auth/setup',
  'POST /api/auth/invite/confirm',
  'POST /api/auth/email/change/confirm',
  'POST /api/auth/otp/request',
  'POST /api/auth/otp/confirm',
  'GET /api/auth/oauth/:provider/start',
  'GET /api/auth/oauth/:provider/callback',
  'POST /api/auth/oauth/:provider/callback',
  'POST /api/auth/oauth/exchange',
  'GET /api/auth/providers',
  'GET /api/files/:id/content',
  'GET /.well-known/jwks.json',
  'GET /healthz',
  'GET /readyz',
  'GET /metrics',
  'GET /openapi.json',
  'GET /docs',
  'GET /docs/page.js',
  'GET /docs/page.css',
  'GET /',
  'GET /auth/sign-in',
  'GET /auth/signed-in',
  'POST /auth/sign-in',
  'GET /auth/passkey',
  'POST /auth/passkey',
  // They show a visitor the way to sign in.
  'GET /auth/second-factor',
  'POST /auth/second-factor',
  'GET /auth/passkeys',
  'POST /auth/passkeys',
  'GET /auth/challenge',
  'POST /auth/challenge',
  'GET /auth/forgot',
  'POST /auth/forgot',
  'GET /auth/reset',
  'POST /auth/reset',
  'GET /auth/verify',
  'POST /auth/verify',
  'GET /auth/invite',
  'POST /auth/invite',
  'GET /auth/login',
  'POST /auth/login',
  'GET /auth/code',
  'POST /auth/code',
  'GET /auth/email',
  'POST /auth/email',
  'GET /auth/setup',
  'POST /auth/setup',
  'GET /playground',
  'GET /studio/assets/:file',
  'GET /studio',
  'GET /studio/:page',
  'GET /studio/:page/:subject',
  'GET /playground',
  'GET /*path',
];

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
const pathOf = ({ path, door }: Route): string => {
  const collection = typeof door === 'object' ? (door.collection ?? 'things') : 'things';
  return path.replace(':collection', collection).replace(':id', NOBODY).replaceAll(/:\w+/g, 'x');
};
const guarded = routes.filter(({ door }) => door !== 'public' && door !== 'optional');
const actions = guarded.filter(({ door }) => typeof door === 'object');

const NO_RULES = { list: [], read: [], create: [], update: [], delete: [] };
function withoutRules(schema: Schema): Schema {
  const bare = (collection: Collection): Collection => ({
    ...collection,
    access: NO_RULES,
    ...(collection.softDelete && { softDelete: { ...collection.softDelete, restore: [] } }),
  });
  return { ...schema, collections: new Map([...schema.collections].map(([name, each]) => [name, bare(each)])) };
}

test('a list names every open route', () => {
  const open = servedRoutes(
    { studio: true, isDevelopment: false, publicFolder: '.' },
    { studio: { path: '/studio', origins: undefined } },
  )
    .filter(({ door }) => door === 'public' || door === 'optional')
    .map(nameOf);
  expect(open.filter((name) => !OPEN.includes(name))).toEqual([]);
});

test('no path of the studio belongs to another route', () => {
  const others = servedRoutes(
    { studio: true, isDevelopment: false },
    { studio: { path: '/admin', origins: undefined } },
  )
    .map(({ path }) => path.split('/')[1]!)
    .filter((first) => first !== '' && first !== 'admin');
  expect(new Set(others).size).toBeGreaterThan(7);
  for (const first of new Set(others))
    expect([first, parseSchema(`studio: { path: /${first} }`).issues[0]?.code]).toEqual([first, 'invalid_studio']);
});

test('every action has a door, and no two routes are one', () => {
  const general = actions.filter(({ path }) => path.startsWith('/api/:collection'));
  expect(general.map(({ door }) => (door as { action: string }).action).toSorted()).toEqual([
    'create',
    'delete',
    'delete',
    'list',
    'list',
    'list',
    'list',
    'list',
    'list',
    'read',
    'read',
    'read',
    'update',
    'update',
  ]);
  expect(new Set(routes.map(nameOf)).size).toBe(routes.length);
});

describeOnBoth(
  'the gate',
  (service) => {
    let users: User[];
    beforeAll(async () => {
      users = [await service.user('admin'), await service.user('member')];
    });

    test.each(guarded.map((route) => [nameOf(route), route] as const))(
      'the gate shuts %s without a credential',
      async (_, route) => {
        for (const headers of [{}, { Authorization: 'Bearer x' }, { Cookie: 'svc_session=x' }] as Record<
          string,
          string
        >[]) {
          expect((await service.anonymous.send(route.method, pathOf(route), { headers })).status).toBe(401);
        }
      },
    );

    test('addresses of users and of sessions are shut to every key', async () => {
      const { auth } = service.app;
      const made = [{ roles: ['admin'] }, { publishable: true }].map((more) =>
        auth.apiKeys.create({ name: 'x', ...more }),
      );
      const closed = guarded.filter(({ door }) => door === 'user' || door === 'session');
      expect(closed.length).toBeGreaterThan(10);
      for (const { secret } of await Promise.all(made)) {
        const client = service.anonymous.with({ Authorization: `Bearer ${secret}` });
        for (const route of closed) {
          const outcome = outcomeOf(await client.send(route.method, pathOf(route)));
          expect([nameOf(route), ...outcome]).toEqual([nameOf(route), 403, 'forbidden']);
        }
      }
    });

    describe('without rules', () => {
      test.each(actions.map((route) => [nameOf(route), route] as const))(
        'the gate shuts %s to every caller',
        async (_, route) => {
          for (const { client } of users) {
            expect(outcomeOf(await client.send(route.method, pathOf(route)))).toEqual([403, 'forbidden']);
          }
        },
      );
    });
  },
  {
    schema:
      'roles: [admin, member]\nguests: true\ncollections:\n  things: { changes: true, soft_delete: true, history: true, fields: { name: string } }\n',
    change: withoutRules,
  },
);
