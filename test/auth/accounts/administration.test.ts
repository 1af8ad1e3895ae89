// @module-tag long
/** Accounts of others over HTTP: who may administer them, what each route does, and what it records. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnOne, type User } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { GUESTS_SCHEMA, newApiKey } from '../keyed.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD } from '../people.ts';

const NOBODY = '01890000-0000-7000-8000-000000000000';

describeOnOne(
  'administration',
  (service) => {
    let admin: User;
    beforeAll(async () => {
      admin = await service.user('admin');
    });
    const ROUTES = (id: string): readonly (readonly [string, string, object?])[] => [
      ['POST', `/api/users/${id}/disable`],
      ['POST', `/api/users/${id}/enable`],
      ['GET', `/api/users/${id}/sessions`],
      ['DELETE', `/api/users/${id}/sessions`],
      ['POST', `/api/users/${id}/password-reset`],
      ['POST', '/api/auth/users', { email: newEmail('made'), roles: [] }],
      ['GET', '/api/_audit'],
      ['GET', '/api/auth/users'],
    ];

    test('the routes are for admins, and for keys whose limit names users', async () => {
      const person = await newPerson(service.anonymous);
      const lead = await service.user('lead');
      const keys = await Promise.all([
        newApiKey(service, admin.client, { roles: ['admin'] }),
        newApiKey(service, admin.client, {
          roles: ['admin'],
          limit: { '*': ['list', 'read', 'create', 'update', 'delete'] },
        }),
        newApiKey(service, admin.client, { roles: ['lead'], limit: { users: ['read', 'update'] } }),
        newApiKey(service, admin.client, { roles: ['admin'], limit: { users: ['list'] } }),
        newApiKey(service, admin.client, { publishable: true, roles: undefined }),
      ]);
      const shut = [person.client, lead.client, ...keys.map(({ client }) => client)];
      for (const client of shut) {
        for (const [method, path, json] of ROUTES(person.id)) {
          expect([method, path, codeOf(await client.send(method, path, { json }))]).toEqual([
            method,
            path,
            '403 forbidden',
          ]);
        }
      }
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
      const named = await newApiKey(service, admin.client, { roles: ['admin'], limit: { users: ['read', 'update'] } });
      const statuses = [];
      for (const [method, path, json] of ROUTES(person.id))
        statuses.push((await named.client.send(method, path, { json })).status);
      expect(statuses).toEqual([204, 204, 200, 204, 202, 201, 200, 200]);
    });

    test('an unknown user is 404', async () => {
      for (const id of [NOBODY, 'x']) {
        for (const [method, path] of ROUTES(id).slice(0, 5)) {
          expect([path, codeOf(await admin.client.send(method, path))]).toEqual([path, '404 not_found']);
        }
      }
    });

    test('a disabled user is out at once, everywhere, until enabled', async () => {
      const { email, id, client, cookieClient } = await newPerson(service.anonymous);
      expect((await admin.client.post(`/api/users/${id}/disable`)).status).toBe(204);
      expect([codeOf(await client.get('/api/auth/me')), codeOf(await cookieClient.get('/api/auth/me'))]).toEqual([
        '401 invalid_token',
        '401 unauthenticated',
      ]);
      const refused = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
      expect(codeOf(refused)).toBe('401 invalid_credentials');
      expect((await admin.client.post(`/api/users/${id}/enable`)).status).toBe(204);
      await login(service.anonymous, email);
      const { data } = (await admin.client.get(`/api/_audit?user=${id}&limit=2`)).body;
      expect(data[1]).toMatchObject({ event: 'user_enabled', user_id: id, actor_id: admin.id, ip: '127.0.0.1', email });
    });

    test('accounts are listed by their addresses, with their state and nothing else', async () => {
      const made = [];
      for (const name of ['c', 'a', 'b']) {
        const email = `listed-${name}.${Date.now()}@example.org`;
        made.push((await admin.client.post('/api/auth/users', { email, roles: ['lead'] })).body.user);
      }
      const [c, a, b] = made;
      await admin.client.post(`/api/users/${b.id}/disable`);
      const listed = async (query: string) => {
        const answer = await admin.client.get(`/api/auth/users?${query}`);
        expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
        return answer.body.data as readonly { readonly id: string }[];
      };
      const account = ({ id, email }: { id: string; email: string }, disabled: boolean) => ({
        id,
        email,
        email_verified: false,
        roles: ['lead'],
        disabled,
        second_factor: false,
      });
      const all = [account(a, false), account(b, true), account(c, false)];
      expect(await listed('email=LISTED-')).toEqual(all);
      expect(await listed(`email=listed-&limit=1&after=${encodeURIComponent(a.email)}`)).toEqual([all[1]]);
      expect(await listed(`user=${c.id}`)).toEqual([all[2]]);
      expect(await listed(`user=${NOBODY}`)).toEqual([]);
      for (const query of ['limit=101', 'user=x', 'disabled=true', 'email=a&email=b'])
        expect([query, codeOf(await admin.client.get(`/api/auth/users?${query}`))]).toEqual([
          query,
          '400 invalid_parameter',
        ]);
    });

    test('the last enabled admin cannot be disabled, also not by two at once', async () => {
      await service.app.db.run(raw(`UPDATE "users" SET roles = '{}' WHERE id <> '${admin.id}'`));
      const disable = (id: string) => admin.client.post(`/api/users/${id}/disable`);
      expect(codeOf(await disable(admin.id))).toBe('409 last_admin');
      const other = await service.user('admin');
      const codes = await Promise.all([disable(admin.id), other.client.post(`/api/users/${other.id}/disable`)]);
      expect(codes.filter(({ status }) => status === 204)).toHaveLength(1);
      await service.app.db.run(raw(`UPDATE "users" SET disabled = false WHERE id = '${admin.id}'`));
      await service.app.auth.authenticator.userChanged(admin.id);
      const again = await login(service.anonymous, admin.email, admin.password);
      admin = { ...admin, client: again.client };
    });

    test('sessions of a user are listed and ended', async () => {
      const person = await newPerson(service.anonymous.with({ 'User-Agent': 'theirs' }));
      const { data } = (await admin.client.get(`/api/users/${person.id}/sessions`)).body;
      expect(data).toEqual([
        expect.objectContaining({ user_agent: 'theirs', ip: '127.0.0.1', id: expect.any(String) }),
      ]);
      expect(Object.keys(data[0])).toEqual(['id', 'created_at', 'last_used_at', 'user_agent', 'ip']);
      expect((await admin.client.delete(`/api/users/${person.id}/sessions`)).status).toBe(204);
      expect(codeOf(await person.client.get('/api/auth/me'))).toBe('401 invalid_token');
      expect((await admin.client.get(`/api/users/${person.id}/sessions`)).body.data).toEqual([]);
      expect((await admin.client.get('/api/auth/me')).status).toBe(200);
    });

    describe('adding a user', () => {
      test('a user is added with a password or without one', async () => {
        const [email, other] = [newEmail('added'), newEmail('added')];
        const made = await admin.client.post('/api/auth/users', {
          email,
          password: PASSWORD,
          roles: ['writer'],
          verified: true,
        });
        expect([made.status, made.body.user]).toEqual([
          201,
          expect.objectContaining({ email, email_verified: true, roles: ['writer'] }),
        ]);
        expect((await login(service.anonymous, email)).access).toBeTruthy();
        const without = await admin.client.post('/api/auth/users', { email: other, roles: [] });
        expect(without.body.user).toMatchObject({ email_verified: false, roles: [] });
        expect(codeOf(await service.anonymous.post('/api/auth/login', { email: other, password: PASSWORD }))).toBe(
          '401 invalid_credentials',
        );
        expect(codeOf(await admin.client.post('/api/auth/users', { email, roles: [] }))).toBe('409 email_taken');
        const [event] = (await admin.client.get(`/api/_audit?event=user_added&user=${made.body.user.id}`)).body.data;
        expect(event).toMatchObject({ actor_id: admin.id, detail: { roles: ['writer'] } });
      });

      test.each<[string, object]>([
        ['an unknown role', { email: newEmail(), roles: ['wirter'] }],
        ['the role of guests', { email: newEmail(), roles: ['guest'] }],
        ['no address', { email: 'x', roles: [] }],
        ['a common password', { email: newEmail(), password: 'password1', roles: [] }],
        ['no roles', { email: newEmail() }],
        ['an unknown key', { email: newEmail(), roles: [], admin: true }],
      ])('%s is rejected', async (_, body) => {
        expect(codeOf(await admin.client.post('/api/auth/users', body))).toBe('422 validation_failed');
      });

      test('an unknown role is reported at its place, and missing roles at their key', async () => {
        const errorsOf = async (roles?: readonly string[]) =>
          (await admin.client.post('/api/auth/users', { email: newEmail(), roles })).body.errors;
        expect(await errorsOf(['writer', 'guest', 'wirter'])).toEqual([
          { pointer: '/roles/1', code: 'unknown_role', detail: 'unknown role `guest`' },
          { pointer: '/roles/2', code: 'unknown_role', detail: 'unknown role `wirter`; did you mean `writer`?' },
        ]);
        expect(await errorsOf()).toEqual([{ pointer: '/roles', code: 'required', detail: 'expected a list' }]);
      });
    });

    test('a password reset is mailed to the user, and sets the password once', async () => {
      const person = await newPerson(service.anonymous);
      expect((await admin.client.post(`/api/users/${person.id}/password-reset`)).status).toBe(202);
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
      const folder = service.app.auth.mailTo;
      let token: string | undefined;
      await until('the mail is written', async () => {
        const files = await readdir(folder).catch(() => []);
        const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
        const mail = texts.find((text) => text.includes(person.email));
        token =
          mail === undefined
            ? undefined
            : /(?<=^|=)[A-Za-z0-9_-]{43}$/m.exec(mail.replaceAll('=\n', '').replaceAll('=3D', '='))?.[0];
        return token !== undefined;
      });
      const confirm = () =>
        service.anonymous.post('/api/auth/password/reset/confirm', { token, password: 'a new long phrase' });
      expect([(await confirm()).status, codeOf(await confirm())]).toEqual([204, '422 validation_failed']);
      await login(service.anonymous, person.email, 'a new long phrase');
    });

    test('the audit trail is read in pages, newest first, and has no secret', async () => {
      const person = await newPerson(service.anonymous);
      const page = async (query: string) =>
        (await admin.client.get(`/api/_audit?user=${person.id}&${query}`)).body.data;
      const [all, newest] = [await page('limit=100'), await page('limit=1')];
      expect(all.map(({ event }: { event: string }) => event)).toEqual(['login', 'register']);
      expect([newest, await page(`limit=1&before=${newest[0].id}`), await page('event=register')]).toEqual([
        [all[0]],
        [all[1]],
        [all[1]],
      ]);
      const text = JSON.stringify((await admin.client.get('/api/_audit?limit=100')).body);
      for (const secret of [person.access, person.refresh, person.cookie.split('=')[1]!, PASSWORD])
        expect(text).not.toContain(secret);
      for (const query of [
        'limit=0',
        'limit=101',
        'limit=1&limit=2',
        'user=x',
        'before=x',
        'evnt=login',
        'event=%ff',
        'event=%00',
      ]) {
        expect([query, codeOf(await admin.client.get(`/api/_audit?${query}`))]).toEqual([
          query,
          '400 invalid_parameter',
        ]);
      }
    });
  },
  { schema: GUESTS_SCHEMA },
);

describeOnOne(
  'a closed registration',
  (service) => {
    test('nobody registers, whether the address is known or not, and an admin adds users', async () => {
      const admin = await service.user('admin');
      const email = newEmail();
      expect((await admin.client.post('/api/auth/users', { email, password: PASSWORD, roles: [] })).status).toBe(201);
      const answers = await Promise.all(
        [email, newEmail()].map((each) =>
          service.anonymous.post('/api/auth/register', { email: each, password: PASSWORD }, { 'X-Request-Id': 'r' }),
        ),
      );
      expect(answers.map(codeOf)).toEqual(Array(2).fill('403 registration_closed'));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect((await login(service.anonymous, email)).access).toBeTruthy();
    });
  },
  { schema: GUESTS_SCHEMA.replace('register: { roles: [reader] }', 'register: { roles: [reader], open: false }') },
);
