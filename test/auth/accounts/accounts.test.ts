// @module-tag long
/** Register, log in, who am I, log out. */
import { expect, test } from 'vitest';
import { describeOnBoth } from '../../support/service.ts';
import { codeOf, cookieOf, login, newEmail, newPerson, PASSWORD, register, SCHEMA } from '../people.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

describeOnBoth(
  'accounts',
  (service) => {
    test('a registration answers with the user, without a password, in lower case', async () => {
      const email = newEmail('Ann').replace('example', 'EXAMPLE');
      const answer = await service.anonymous.post('/api/auth/register', { email, password: PASSWORD });
      expect([answer.status, answer.headers.get('cache-control'), answer.headers.getSetCookie()]).toEqual([
        201,
        'no-store',
        [],
      ]);
      expect(answer.body).toEqual({
        user: {
          id: expect.stringMatching(UUID),
          email: email.toLowerCase(),
          email_verified: false,
          roles: ['member'],
          created_at: expect.stringMatching(INSTANT),
          updated_at: expect.stringMatching(INSTANT),
          nick: null,
          level: 3,
          seen_at: null,
          team: null,
        },
      });
    });

    test.each([
      ['role', { role: 'admin' }],
      ['roles', { roles: ['admin'] }],
      ['email_verified', { email_verified: true }],
      ['a field of the schema', { level: 9 }],
      ['disabled', { disabled: false }],
      ['__proto__', JSON.parse('{ "__proto__": { "roles": ["admin"] } }')],
    ])('a registration rejects %s in its body, and makes no account', async (_, more) => {
      const email = newEmail();
      const answer = await service.anonymous.post('/api/auth/register', { email, password: PASSWORD, ...more });
      const raw = await service.anonymous.send('POST', '/api/auth/register', {
        headers: { 'Content-Type': 'application/json' },
        raw: `{"email":"${email}","password":"${PASSWORD}",${JSON.stringify(more).slice(1)}`,
      });
      const key = Object.keys(more)[0] ?? '__proto__';
      for (const each of key === '__proto__' ? [raw] : [answer, raw]) {
        expect(codeOf(each)).toBe('422 validation_failed');
        expect(each.body.errors).toEqual([{ pointer: `/${key}`, code: 'unknown_key', detail: 'unknown key' }]);
      }
      expect(codeOf(await service.anonymous.post('/api/auth/login', { email, password: PASSWORD }))).toBe(
        '401 invalid_credentials',
      );
    });

    test('a registration reports all errors of a body at once', async () => {
      const answer = await service.anonymous.post('/api/auth/register', { email: 'nobody', name: 'x' });
      expect(codeOf(answer)).toBe('422 validation_failed');
      expect(
        answer.body.errors.map(({ pointer, code }: { pointer: string; code: string }) => `${pointer} ${code}`),
      ).toEqual(['/email invalid_value', '/password required', '/name unknown_key']);
      expect((await service.anonymous.post('/api/auth/login', [])).body.errors).toEqual([
        { pointer: '', code: 'not_an_object', detail: 'expected an object' },
      ]);
      expect(
        (await service.anonymous.post('/api/auth/login', { email: 1, password: PASSWORD })).body.errors,
      ).toMatchObject([{ pointer: '/email', code: 'wrong_type' }]);
    });

    test('an address registers once, in any letter case, also for twenty concurrent requests', async () => {
      const email = newEmail();
      const body = (i: number) => ({ email: i % 2 ? email.toUpperCase() : email, password: PASSWORD });
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => service.anonymous.post('/api/auth/register', body(i))),
      );
      const codes = answers.map(codeOf).sort();
      expect(codes).toEqual(['201 undefined', ...Array(19).fill('409 email_taken')]);
    });

    test('a login answers with tokens, the user and the cookie', async () => {
      const { id, email } = await register(service.anonymous);
      const answer = await service.anonymous.post('/api/auth/login', {
        email: email.toUpperCase(),
        password: PASSWORD,
      });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.body).toEqual({
        access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
        token_type: 'Bearer',
        expires_in: 900,
        refresh_token: expect.stringMatching(/^[\w-]{43}$/),
        refresh_expires_in: 14 * 86_400,
        user: expect.objectContaining({ id, email, roles: ['member'], level: 3 }),
      });
      expect(answer.headers.getSetCookie()).toEqual([
        expect.stringMatching(/^svc_session=[\w-]{43}; Path=\/; Max-Age=1209600; HttpOnly; SameSite=Lax$/),
      ]);
    });

    test('register, login, me and the collection show the same user', async () => {
      const email = newEmail();
      const registered = await service.anonymous.post('/api/auth/register', { email, password: PASSWORD });
      const answer = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
      const client = service.anonymous.with({ Authorization: `Bearer ${answer.body.access_token}` });
      const { user } = registered.body;
      expect(answer.body.user).toEqual(user);
      expect((await client.get('/api/auth/me')).body).toEqual({ user, second_factor: 'none' });
      expect((await client.get(`/api/users/${user.id}`)).body).toEqual({ data: user });
    });

    test('no answer and no table holds a password', async () => {
      const { client, id } = await newPerson(service.anonymous);
      const answers = await Promise.all(
        ['/api/auth/me', '/api/users', `/api/users/${id}`].map((path) => client.get(path)),
      );
      for (const { status, text } of answers) {
        expect(status).toBe(200);
        expect(text).not.toMatch(/argon2|password|hash/i);
      }
    });

    test.each([
      ['a wrong password', { password: `${PASSWORD}!` }],
      ['an unknown email', { email: 'nobody-at-all@example.org' }],
      ['an email that cannot be one', { email: 'a\u0000b' }],
      ['a password that cannot be one', { password: '\ud800' }],
      ['a password that is too long', { password: 'x'.repeat(10_000) }],
      ['no password', { password: '' }],
    ])('a login with %s gets the one error', async (_, wrong) => {
      const { email } = await register(service.anonymous);
      const answer = await service.anonymous.send('POST', '/api/auth/login', {
        headers: { 'X-Request-Id': 'the-same', 'Content-Type': 'application/json' },
        raw: JSON.stringify({ email, password: PASSWORD, ...wrong }),
      });
      expect(answer.body).toEqual({
        type: 'urn:bylaw:invalid_credentials',
        title: 'The email or the password is wrong',
        status: 401,
        detail: 'the email or the password is wrong',
        code: 'invalid_credentials',
        request_id: 'the-same',
        errors: [],
      });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      expect(answer.headers.getSetCookie()).toEqual([]);
    });

    test('a logout ends the session: the bearer token, the cookie and the refresh token', async () => {
      for (const by of ['client', 'cookieClient'] as const) {
        const person = await newPerson(service.anonymous);
        const other = await login(service.anonymous, person.email);
        const answer = await person[by].post('/api/auth/logout');
        expect([answer.status, answer.text]).toEqual([204, '']);
        expect(answer.headers.getSetCookie()).toEqual([
          'svc_session=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax',
        ]);
        expect(codeOf(await person.client.get('/api/auth/me'))).toBe('401 invalid_token');
        expect(codeOf(await person.cookieClient.get('/api/notes'))).toBe('401 unauthenticated');
        const spent = await service.anonymous.post('/api/auth/token/refresh', { refresh_token: person.refresh });
        expect(codeOf(spent)).toBe('401 invalid_token');
        expect((await other.client.get('/api/auth/me')).status).toBe(200);
      }
    });

    test('a session that a stranger fixed before the login is not the one that the login makes', async () => {
      const attacker = await newPerson(service.anonymous);
      const victim = await register(service.anonymous);
      const withFixed = service.anonymous.with({ Cookie: attacker.cookie });
      const answer = await withFixed.post('/api/auth/login', { email: victim.email, password: PASSWORD });
      expect(answer.status).toBe(200);
      expect(cookieOf(answer, 'svc_session')).not.toBe(attacker.cookie);
      expect((await withFixed.get('/api/auth/me')).body.user.id).toBe(attacker.id);
      const made = service.anonymous.with({ Cookie: 'svc_session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' });
      expect(codeOf(await made.get('/api/auth/me'))).toBe('401 unauthenticated');
    });

    test('a user who is disabled is out at once and cannot come back, until enabled', async () => {
      const person = await newPerson(service.anonymous);
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
      await service.app.auth.admin.setDisabled(person.email, true);
      expect(codeOf(await person.client.get('/api/auth/me'))).toBe('401 invalid_token');
      expect(codeOf(await person.cookieClient.get('/api/auth/me'))).toBe('401 unauthenticated');
      const back = () => service.anonymous.post('/api/auth/login', { email: person.email, password: PASSWORD });
      expect(codeOf(await back())).toBe('401 invalid_credentials');
      await service.app.auth.admin.setDisabled(person.email, false);
      expect((await back()).status).toBe(200);
    });

    test('a start makes the first admin once', async () => {
      const email = newEmail('root');
      const { admin } = service.app.auth;
      const made = await Promise.all([1, 2, 3].map(() => admin.ensureAdmin(email, PASSWORD)));
      expect(made.filter(Boolean)).toEqual([true]);
      expect(await admin.ensureAdmin(email, 'another password of mine')).toBe(false);
      const { client } = await login(service.anonymous, email);
      expect((await client.get('/api/auth/me')).body.user).toMatchObject({
        email_verified: true,
        roles: ['admin', 'member'],
      });
    });
  },
  { schema: SCHEMA },
);
