// @module-tag long
// @module-tag partitions
/** Registration, login and tokens as a client sees them, and "Users" of the interface. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../support/client.ts';
import { idsOf, NOBODY, outcomeOf } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, 'bylaw.yaml'), 'utf8');
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const pointersOf = ({ status, body }: Answer) => [
  status,
  body.code,
  body.errors?.map(({ pointer }: { pointer: string }) => pointer),
];

describeOnBoth(
  'users and tokens',
  (service) => {
    let ann: User;
    let ed: User;
    let root: User;
    let number = 0;
    const freshEmail = () => `n${++number}.${service.kind}@example.org`;
    const register = (json: unknown, headers: Record<string, string> = {}) =>
      service.anonymous.post('/api/auth/register', json, headers);
    const login = (json: unknown) => service.anonymous.post('/api/auth/login', json);
    const password = 'a password of contracts';
    beforeAll(async () => {
      [ann, ed, root] = await Promise.all([service.user(), service.user('editor'), service.user('admin')]);
    });

    describe('register', () => {
      test('register makes a user, and no session', async () => {
        const email = `Some.ONE.${service.kind}@Example.ORG`;
        const { status, headers, body } = await register({ email, password });
        const user = {
          id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          email: email.toLowerCase(),
          email_verified: false,
          roles: ['member'],
          created_at: expect.stringMatching(TIME),
          updated_at: body.user.created_at,
          nickname: null,
          karma: 3,
          best: null,
        };
        expect([status, headers.getSetCookie(), body]).toEqual([201, [], { user }]);
        expect(outcomeOf(await register({ email: email.toUpperCase(), password }))).toEqual([
          409,
          'email_taken',
          ...outcomeOf(await register({ email, password })).slice(2),
        ]);
        const there = await login({ email: email.toUpperCase(), password });
        expect([there.status, there.body.user]).toEqual([200, user]);
        expect(there.headers.getSetCookie()[0]?.split('; ').sort()).toEqual(
          expect.arrayContaining(
            ['HttpOnly', 'Path=/', 'SameSite=Lax', expect.stringMatching(/^svc_session=/i)].map((each) =>
              typeof each === 'string' ? expect.stringMatching(new RegExp(`^${each}$`, 'i')) : each,
            ),
          ),
        );
        expect(there.body.expires_in).toBe(900);
      });
      const invalid: readonly (readonly [unknown, ...string[]])[] = [
        [{}, '/email', '/password'],
        [{ email: 'a@example.org' }, '/password'],
        [{ password }, '/email'],
        [{ email: 1, password: true }, '/email', '/password'],
        [{ email: null, password: null }, '/email', '/password'],
        [{ email: 'a@example.org', password, roles: ['admin'] }, '/roles'],
        [{ email: 'a@example.org', password, nickname: 'x' }, '/nickname'],
        [{ email: 'a@example.org', password, __proto__x: 1 }, '/__proto__x'],
        [{ data: { email: 'a@example.org', password } }, '/data', '/email', '/password'],
        ...[
          '',
          'x',
          '@',
          'a@',
          '@b',
          'a b@example.org',
          'a@b@c',
          'a\u0000@example.org',
          'a@example.org\n',
          ' a@example.org',
          `${'a'.repeat(320)}@example.org`,
        ].map((email) => [{ email, password }, '/email'] as const),
        ...['', '1234567', 'password', '12345678', 'x'.repeat(257), 'a\u0000bcdefgh', '😀'.repeat(7)].map(
          (bad) => [{ email: 'a@example.org', password: bad }, '/password'] as const,
        ),
      ];
      for (const [json, ...pointers] of invalid)
        test(JSON.stringify(json).slice(0, 70), async () => {
          const [status, code, told] = pointersOf(await register(json));
          expect([status, code, [...((told as string[] | undefined) ?? [])].sort()]).toEqual([
            422,
            'validation_failed',
            pointers,
          ]);
        });
      test('register reads its body like other routes', async () => {
        const send = async (raw: string, type?: string) =>
          outcomeOf(
            await service.anonymous.send('POST', '/api/auth/register', {
              raw: new Uint8Array(Buffer.from(raw)),
              headers: type === undefined ? {} : { 'Content-Type': type },
            }),
          ).slice(0, 2);
        expect(await send('{}')).toEqual([415, 'unsupported_media_type']);
        expect(await send('{', 'application/json')).toEqual([400, 'malformed_json']);
        expect(await send('{"email":"a","email":"b"}', 'application/json')).toEqual([400, 'malformed_json']);
        expect((await send('[]', 'application/json'))[0]).toBe(422);
      });
      test('passwords have 8 to 256 characters, compared after NFKC', async () => {
        for (const [given, said] of [
          ['x8#ü\u00e9kl9', 'x8#u\u0308e\u0301kl9'],
          ['😀a'.repeat(128), '😀a'.repeat(128)],
          ['ﬁne ﬁne ﬁ', 'fine fine fi'],
        ] as const) {
          const email = freshEmail();
          expect((await register({ email, password: given })).status).toBe(201);
          expect((await login({ email, password: said })).status).toBe(200);
        }
      });
      test('a single registration of two concurrent ones succeeds', async () => {
        const email = freshEmail();
        const both = await Promise.all([register({ email, password }), register({ email, password })]);
        expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
      });
    });

    describe('login', () => {
      test('login answers alike for an unknown email and a wrong password', async () => {
        const [wrong, unknown] = await Promise.all([
          login({ email: ann.email, password: 'not the one' }),
          login({ email: freshEmail(), password: 'not the one' }),
        ]);
        const said = ({ status, body }: Answer) => [status, { ...body, request_id: '' }];
        expect(said(wrong)).toEqual(said(unknown));
        expect(outcomeOf(wrong).slice(0, 2)).toEqual([401, 'invalid_credentials']);
        expect(wrong.headers.getSetCookie()).toEqual([]);
      });
      for (const json of [{}, { email: 1, password: 2 }, { email: 'x' }, { email: 'a@b.c', password: 'x', extra: 1 }])
        test(JSON.stringify(json), async () =>
          expect(outcomeOf(await login(json)).slice(0, 2)).toEqual([422, 'validation_failed']),
        );
      for (const json of [
        { email: 'x', password: 'y' },
        { email: "' or 1=1 --@x.y", password: '' },
        { email: 'a\u0000@b.c', password: 'x' },
      ])
        test(JSON.stringify(json), async () => expect([401, 422]).toContain((await login(json)).status));
    });

    describe('refresh', () => {
      const refresh = (json: unknown) => service.anonymous.post('/api/auth/token/refresh', json);
      test('refresh rotates; a retry of the newest token gets a successor, an older token ends the session', async () => {
        const first = (await login({ email: ann.email, password: ann.password })).body;
        const second = await refresh({ refresh_token: first.refresh_token });
        expect([second.status, second.body.user, second.body.refresh_token === first.refresh_token]).toEqual([
          200,
          first.user,
          false,
        ]);
        expect((await refresh({ refresh_token: first.refresh_token })).status).toBe(200);
        const third = await refresh({ refresh_token: second.body.refresh_token });
        expect(third.status).toBe(200);
        expect(outcomeOf(await refresh({ refresh_token: first.refresh_token }))).toEqual([401, 'refresh_reused']);
        expect((await refresh({ refresh_token: third.body.refresh_token })).status).toBe(401);
        expect(
          (await service.anonymous.get('/api/auth/me', { Authorization: `Bearer ${third.body.access_token}` })).status,
        ).toBe(401);
      });
      for (const json of [{}, { refresh_token: 1 }, { refresh_token: null }, { refresh_token: 'x', extra: 1 }])
        test(JSON.stringify(json), async () =>
          expect(outcomeOf(await refresh(json)).slice(0, 2)).toEqual([422, 'validation_failed']),
        );
      for (const token of ['', 'x', 'a\u0000', 'ä'.repeat(40), ann?.token ?? 'e.e.e'])
        test(JSON.stringify(token), async () =>
          expect([
            [401, 'invalid_token'],
            [422, 'validation_failed'],
          ]).toContainEqual(outcomeOf(await refresh({ refresh_token: token })).slice(0, 2)),
        );
    });

    describe('sessions and passwords', () => {
      test('the list shows and ends only the caller’s own sessions', async () => {
        const eve = await service.user();
        const other = (await login({ email: eve.email, password: eve.password })).body.access_token;
        const { status, body } = await eve.client.get('/api/auth/sessions');
        const session = {
          id: expect.any(String),
          created_at: expect.stringMatching(TIME),
          last_used_at: expect.stringMatching(TIME),
          user_agent: expect.any(String),
          ip: '127.0.0.1',
          current: expect.any(Boolean),
        };
        expect([status, body]).toEqual([200, { data: [session, session] }]);
        expect(body.data.map(({ current }: { current: boolean }) => current).sort()).toEqual([false, true]);
        const another = body.data.find(({ current }: { current: boolean }) => !current).id;
        for (const id of [another, NOBODY, 'x', '__proto__'])
          expect(outcomeOf(await ann.client.delete(`/api/auth/sessions/${id}`))).toEqual([404, 'not_found']);
        expect((await eve.client.delete(`/api/auth/sessions/${another}`)).status).toBe(204);
        expect(outcomeOf(await service.anonymous.get('/api/auth/me', { Authorization: `Bearer ${other}` }))).toEqual([
          401,
          'invalid_token',
        ]);
        expect((await eve.client.get('/api/auth/me')).status).toBe(200);
      });
      test('a changed password ends all other sessions', async () => {
        const eve = await service.user();
        const other = (await login({ email: eve.email, password: eve.password })).body.access_token;
        const change = (json: unknown) => eve.client.post('/api/auth/password', json);
        expect(outcomeOf(await change({ password: 'wrong one', new_password: password })).slice(0, 2)).toEqual([
          401,
          'invalid_credentials',
        ]);
        expect(pointersOf(await change({ password: eve.password, new_password: 'short' }))).toEqual([
          422,
          'validation_failed',
          ['/new_password'],
        ]);
        expect((await change({ password: eve.password, new_password: password })).status).toBe(204);
        expect((await eve.client.get('/api/auth/me')).status).toBe(200);
        expect((await service.anonymous.get('/api/auth/me', { Authorization: `Bearer ${other}` })).status).toBe(401);
        expect((await login({ email: eve.email, password: eve.password })).status).toBe(401);
      });
      test('any client may request a reset; the token confirms it', async () => {
        const ask = (email: unknown) => service.anonymous.post('/api/auth/password/reset/request', { email });
        const [known, unknown] = await Promise.all([ask(ann.email), ask(freshEmail())]);
        expect([known.status, known.text]).toEqual([202, unknown.text]);
        expect(unknown.status).toBe(202);
        const { status } = await service.anonymous.post('/api/auth/password/reset/confirm', { token: 'x', password });
        expect([400, 401, 422]).toContain(status);
      });
    });

    describe('the collection of users', () => {
      const patch = (who: User, whom: User, data: object) => who.client.patch(`/api/users/${whom.id}`, { data });
      test('a user reads and lists itself, an admin all users', async () => {
        const me = (await ann.client.get('/api/auth/me')).body.user;
        expect((await ann.client.get(`/api/users/${ann.id}`)).body).toEqual({ data: me });
        expect((await ann.client.get('/api/users', { Prefer: 'count=exact' })).body).toEqual({
          data: [me],
          page: { limit: 20, offset: 0, has_more: false, total: 1 },
        });
        expect(outcomeOf(await ann.client.get(`/api/users/${ed.id}`))).toEqual([404, 'not_found']);
        expect(idsOf((await root.client.get(`/api/users?email=${encodeURIComponent(ann.email)}`)).body.data)).toEqual([
          ann.id,
        ]);
        expect((await ann.client.get(`/api/users?email=${encodeURIComponent(ed.email)}`)).body.data).toEqual([]);
        for (const query of [
          'password=x',
          'password_hash=x',
          'hash=x',
          'roles=member',
          'roles_any=member',
          'disabled=false',
        ])
          expect([query, ...outcomeOf(await root.client.get(`/api/users?${query}`)).slice(0, 2)]).toEqual([
            query,
            400,
            'filter_unknown_key',
          ]);
        for (const name of ['roles', 'password', 'sessions'])
          expect(outcomeOf(await ann.client.get(`/api/users?expand=${name}`)).slice(0, 2)).toEqual([
            400,
            'unknown_expand',
          ]);
      });
      test('a user patches its own fields and nothing else', async () => {
        const thing = (await ann.client.post('/api/things', { data: { title: 'u' } })).body.data;
        const changed = await ann.client.patch(`/api/users/${ann.id}?expand=best`, {
          data: { nickname: 'annie', karma: null, best: thing.id },
        });
        expect([changed.status, changed.body.data]).toEqual([
          200,
          { ...(await ann.client.get('/api/auth/me')).body.user, expand: { best: thing } },
        ]);
        expect(changed.body.data).toMatchObject({ nickname: 'annie', karma: null, best: thing.id });
        for (const [key, value] of Object.entries({
          email: 'x@example.org',
          email_verified: true,
          password: 'x',
          id: NOBODY,
          password_hash: 'x',
          disabled: true,
          created_at: null,
        }))
          expect(pointersOf(await patch(ann, ann, { [key]: value }))).toEqual([
            422,
            'validation_failed',
            [`/data/${key}`],
          ]);
        expect(pointersOf(await patch(ann, ann, { nickname: 'x'.repeat(21) }))).toEqual([
          422,
          'validation_failed',
          ['/data/nickname'],
        ]);
        expect(outcomeOf(await patch(ann, ann, {}))).toEqual([400, 'patch_empty']);
        expect(outcomeOf(await patch(ann, ed, { nickname: 'x' }))).toEqual([404, 'not_found']);
        expect(outcomeOf(await patch(root, ann, { nickname: 'x' }))).toEqual([403, 'forbidden']);
        for (const who of [ann, root])
          expect(outcomeOf(await who.client.delete(`/api/users/${ann.id}`))).toEqual([403, 'forbidden']);
      });
      test('only users who may assign roles do', async () => {
        const eve = await service.user();
        const rolesOf = async () => (await eve.client.get('/api/auth/me')).body.user.roles;
        expect(outcomeOf(await patch(eve, eve, { roles: { add: ['admin'] } }))).toEqual([403, 'forbidden']);
        // A caller cannot assign the role to any user: the rule decides without a lookup.
        for (const id of [ann.id, NOBODY])
          expect(
            outcomeOf(await eve.client.patch(`/api/users/${id}`, { data: { roles: { add: ['admin'] } } })),
          ).toEqual([403, 'forbidden']);
        // An editor assigns members, but sees no one else.
        expect(outcomeOf(await patch(ed, eve, { roles: { remove: ['member'] } }))).toEqual([404, 'not_found']);
        expect((await patch(ed, ed, { roles: { add: ['member'] } })).body.data.roles.sort()).toEqual([
          'editor',
          'member',
        ]);
        expect(outcomeOf(await patch(ed, ed, { roles: { add: ['admin'] } }))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await patch(ed, ed, { roles: { remove: ['editor'] } }))).toEqual([403, 'forbidden']);
        expect(
          (
            await patch(root, eve, { roles: { add: ['editor', 'editor', 'guest'], remove: ['guest', 'admin'] } })
          ).body.data.roles.sort(),
        ).toEqual(['editor', 'member']);
        expect((await rolesOf()).sort()).toEqual(['editor', 'member']);
        expect((await patch(root, eve, { roles: { set: ['guest'] } })).body.data.roles).toEqual(['guest']);
        expect(outcomeOf(await eve.client.get('/api/notes'))).toEqual([200, undefined]);
        expect(outcomeOf(await eve.client.post('/api/notes', { data: { text: 'x' } }))).toEqual([403, 'forbidden']);
        expect((await patch(root, eve, { roles: { set: [] } })).body.data.roles).toEqual([]);
        for (const roles of [
          {},
          [],
          null,
          'admin',
          { add: 'admin' },
          { add: [1] },
          { add: ['nothing'] },
          { add: ['__proto__'] },
          { put: [] },
        ])
          expect([JSON.stringify(roles), ...outcomeOf(await patch(root, eve, { roles })).slice(0, 2)]).toEqual([
            JSON.stringify(roles),
            422,
            'validation_failed',
          ]);
        expect(outcomeOf(await patch(root, eve, { roles: { add: ['guest'] }, nickname: 'x' }))).toEqual([
          403,
          'forbidden',
        ]);
        expect(await rolesOf()).toEqual([]);
      });
    });
  },
  { schema: SCHEMA },
);
