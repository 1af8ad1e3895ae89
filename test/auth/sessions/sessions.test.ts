// @module-tag long
/** Sessions over their life: refreshing, its replay and its races, lifetimes, the list, and what ends them. */
import { expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnBoth } from '../../support/service.ts';
import { codeOf, cookieOf, login, newPerson, PASSWORD, refresh, SCHEMA, TOKEN_KEYS, tokensOf } from '../people.ts';

describeOnBoth(
  'refreshing',
  (service) => {
    test('a refresh gives new tokens for the same session, and the same cookie with a new age', async () => {
      const person = await newPerson(service.anonymous);
      const answer = await refresh(service.anonymous, person.refresh);
      expect(Object.keys(answer.body)).toEqual(TOKEN_KEYS);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      const next = tokensOf(service.anonymous, answer);
      expect(next.cookie).toBe(person.cookie);
      expect(next.refresh).not.toBe(person.refresh);
      expect(answer.headers.getSetCookie()[0]).toContain('; Max-Age=1209600; HttpOnly; SameSite=Lax');
      expect((await next.client.get('/api/auth/me')).body.user.id).toBe(person.id);
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
      const { data } = (await next.client.get('/api/auth/sessions')).body;
      expect(data).toHaveLength(1);
    });

    test('a retry of the newest spent token gets a further successor', async () => {
      const person = await newPerson(service.anonymous);
      const first = tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh));
      const again = tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh));
      expect(again.refresh).not.toBe(first.refresh);
      expect((await refresh(service.anonymous, again.refresh)).status).toBe(200);
    });

    test('a replayed token that is not the newest spent one ends the whole session', async () => {
      const person = await newPerson(service.anonymous);
      const second = tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh));
      const third = tokensOf(service.anonymous, await refresh(service.anonymous, second.refresh));
      expect(codeOf(await refresh(service.anonymous, person.refresh))).toBe('401 refresh_reused');
      expect(codeOf(await refresh(service.anonymous, third.refresh))).toBe('401 invalid_token');
      expect(codeOf(await third.client.get('/api/auth/me'))).toBe('401 invalid_token');
      expect(codeOf(await third.cookieClient.get('/api/auth/me'))).toBe('401 unauthenticated');
    });

    test('ten seconds after its use, the newest spent token ends the session as well', async () => {
      const person = await newPerson(service.anonymous);
      const next = tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh));
      // The clock of the session is set back instead of waiting.
      await service.app.db.run(raw(`UPDATE "_auth_sessions" SET rotated_at = rotated_at - interval '9 seconds'`));
      const retried = await refresh(service.anonymous, person.refresh);
      expect(retried.status).toBe(200);
      await service.app.db.run(raw(`UPDATE "_auth_sessions" SET rotated_at = rotated_at - interval '2 seconds'`));
      expect(codeOf(await refresh(service.anonymous, person.refresh))).toBe('401 refresh_reused');
      expect(codeOf(await next.client.get('/api/auth/me'))).toBe('401 invalid_token');
    });

    test('a single line of tokens survives a race of twenty clients, and a token of another line ends the session', async () => {
      const person = await newPerson(service.anonymous);
      const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service.anonymous, person.refresh)));
      expect(new Set(answers.map(codeOf))).toEqual(new Set(['200 undefined']));
      const tokens = answers.map((answer) => tokensOf(service.anonymous, answer));
      expect(new Set(tokens.map((each) => each.refresh)).size).toBe(20);
      expect((await tokens[0]!.client.get('/api/auth/sessions')).body.data).toHaveLength(1);
      const winner = tokensOf(service.anonymous, await refresh(service.anonymous, tokens[7]!.refresh));
      expect(codeOf(await refresh(service.anonymous, tokens[3]!.refresh))).toBe('401 refresh_reused');
      expect(codeOf(await winner.client.get('/api/auth/me'))).toBe('401 invalid_token');
    });

    test('twenty clients that race with siblings leave one line of tokens at most', async () => {
      const person = await newPerson(service.anonymous);
      const siblings = await Promise.all(
        Array.from({ length: 20 }, async () =>
          tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh)),
        ),
      );
      const answers = await Promise.all(siblings.map((each) => refresh(service.anonymous, each.refresh)));
      const codes = answers.map(codeOf);
      expect(codes.filter((code) => code === '200 undefined')).toHaveLength(1);
      expect(codes.filter((code) => code === '401 refresh_reused')).toHaveLength(1);
      expect(codes.filter((code) => code === '401 invalid_token')).toHaveLength(18);
      expect(codeOf(await person.client.get('/api/auth/me'))).toBe('401 invalid_token');
    });

    test.each([
      ['a token that never was', 'A'.repeat(43)],
      ['no such shape', "' OR 1=1 --"],
      ['a NUL', 'a\u0000b'],
    ])('%s', async (_, token) => {
      expect(codeOf(await refresh(service.anonymous, token))).toBe('401 invalid_token');
    });
    test('a refresh reads its body strictly', async () => {
      expect(codeOf(await service.anonymous.post('/api/auth/token/refresh', {}))).toBe('422 validation_failed');
      expect(codeOf(await service.anonymous.post('/api/auth/token/refresh', { refresh_token: 1 }))).toBe(
        '422 validation_failed',
      );
      expect(codeOf(await service.anonymous.send('POST', '/api/auth/token/refresh', { raw: '{}' }))).toBe(
        '415 unsupported_media_type',
      );
    });
    test('access tokens, cookies and refresh tokens cannot be used for one another', async () => {
      const person = await newPerson(service.anonymous);
      expect(codeOf(await refresh(service.anonymous, person.access))).toBe('401 invalid_token');
      expect(codeOf(await refresh(service.anonymous, person.cookie.split('=')[1]!))).toBe('401 invalid_token');
      const swapped = service.anonymous.with({ Cookie: `svc_session=${person.refresh}` });
      expect(codeOf(await swapped.get('/api/auth/me'))).toBe('401 unauthenticated');
    });

    test('the tables hold no token', async () => {
      const person = await newPerson(service.anonymous);
      const next = tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh));
      const tables = ['_auth_sessions', '_auth_refresh_tokens', '_auth_accounts', '_auth_audit'];
      const dump = await Promise.all(tables.map((name) => service.app.db.rows(raw(`SELECT t::text FROM "${name}" t`))));
      const text = JSON.stringify(dump);
      expect(text.length).toBeGreaterThan(500);
      for (const secret of [person.refresh, person.access, person.cookie.split('=')[1]!, next.refresh, PASSWORD]) {
        expect(text).not.toContain(secret);
      }
    });
  },
  { schema: SCHEMA },
);

describeOnBoth(
  'the list of sessions',
  (service) => {
    test('the list shows the own sessions, newest first, and ends one of them', async () => {
      const person = await newPerson(service.anonymous.with({ 'User-Agent': 'first browser' }));
      const second = await login(service.anonymous.with({ 'User-Agent': 'second browser' }), person.email);
      await newPerson(service.anonymous);
      const { data } = (await second.client.get('/api/auth/sessions')).body;
      const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/);
      const shape = { id: uuid, created_at: instant, last_used_at: instant, ip: '127.0.0.1' };
      expect(data).toEqual([
        { ...shape, user_agent: 'second browser', current: true },
        { ...shape, user_agent: 'first browser', current: false },
      ]);
      const gone = await second.client.delete(`/api/auth/sessions/${data[1].id.toUpperCase()}`);
      expect([gone.status, gone.headers.getSetCookie()]).toEqual([204, []]);
      expect(codeOf(await person.client.get('/api/auth/me'))).toBe('401 invalid_token');
      expect(codeOf(await refresh(service.anonymous, person.refresh))).toBe('401 invalid_token');
      expect((await second.client.get('/api/auth/sessions')).body.data).toHaveLength(1);
      const own = await second.client.delete(`/api/auth/sessions/${data[0].id}`);
      expect([own.status, own.headers.getSetCookie().length]).toEqual([204, 1]);
      expect(codeOf(await second.client.get('/api/auth/me'))).toBe('401 invalid_token');
    });

    test("another user's session, one that never existed, and an invalid id get the same 404", async () => {
      const person = await newPerson(service.anonymous);
      const other = await newPerson(service.anonymous);
      const { id } = (await other.client.get('/api/auth/sessions')).body.data[0];
      const answers = await Promise.all(
        [id, '01890000-0000-7000-8000-000000000000', 'x'].map((each) =>
          person.client.delete(`/api/auth/sessions/${each}`),
        ),
      );
      expect(answers.map(codeOf)).toEqual(Array(3).fill('404 not_found'));
      expect((await other.client.get('/api/auth/me')).status).toBe(200);
    });

    test('a new password needs the present one and ends all other sessions', async () => {
      const person = await newPerson(service.anonymous);
      const other = await login(service.anonymous, person.email);
      const change = (password: string, new_password: string) =>
        person.client.post('/api/auth/password', { password, new_password });
      const next = 'an even longer phrase';
      expect(codeOf(await change(next, next))).toBe('401 invalid_credentials');
      const weak = await change(PASSWORD, 'password1');
      expect(weak.body.errors).toMatchObject([{ pointer: '/new_password', code: 'common_password' }]);
      expect((await other.client.get('/api/auth/me')).status).toBe(200);
      const changed = await change(PASSWORD, next);
      expect([changed.status, changed.text]).toEqual([204, '']);
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
      expect(codeOf(await other.client.get('/api/auth/me'))).toBe('401 invalid_token');
      expect(codeOf(await other.cookieClient.get('/api/auth/me'))).toBe('401 unauthenticated');
      expect(codeOf(await refresh(service.anonymous, other.refresh))).toBe('401 invalid_token');
      expect(codeOf(await service.anonymous.post('/api/auth/login', { email: person.email, password: PASSWORD }))).toBe(
        '401 invalid_credentials',
      );
      await login(service.anonymous, person.email, next);
    });
  },
  { schema: SCHEMA },
);

describeOnBoth(
  'lifetimes',
  (service) => {
    /** The clocks of all sessions are set back instead of waiting. */
    const pass = (seconds: number) => {
      const time = `interval '${seconds} seconds'`;
      return service.app.db.run(
        raw(`UPDATE "_auth_sessions" SET created_at = created_at - ${time}, last_used_at = last_used_at - ${time}`),
      );
    };
    test('an access token ends with its time, and the session goes on by refreshing', async () => {
      const person = await newPerson(service.anonymous);
      const answer = await refresh(service.anonymous, person.refresh);
      expect([answer.body.expires_in, answer.body.refresh_expires_in]).toEqual([2, 5]);
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
      await pass(3.5);
      // Idle for 3 of its 5 seconds: touched by the refresh, it lives on, until it is 8 seconds old in any case.
      const late = await refresh(service.anonymous, answer.body.refresh_token);
      expect(late.status).toBe(200);
      expect(late.body.refresh_expires_in).toBeLessThanOrEqual(5);
      await pass(2.5);
      const next = await refresh(service.anonymous, late.body.refresh_token);
      expect([next.status, next.body.refresh_expires_in <= 2]).toEqual([200, true]);
      await pass(2.6);
      expect(codeOf(await refresh(service.anonymous, next.body.refresh_token))).toBe('401 invalid_token');
      expect(codeOf(await service.anonymous.get('/api/auth/me', { Cookie: cookieOf(next, 'svc_session')! }))).toBe(
        '401 unauthenticated',
      );
    });
    test('a session without use is over', async () => {
      const idle = await newPerson(service.anonymous);
      const used = await newPerson(service.anonymous);
      for (let i = 0; i < 6; i++) {
        await pass(1);
        expect((await used.cookieClient.get('/api/auth/me')).status).toBe(200);
      }
      expect(codeOf(await idle.cookieClient.get('/api/auth/me'))).toBe('401 unauthenticated');
      expect(codeOf(await refresh(service.anonymous, idle.refresh))).toBe('401 invalid_token');
    });
  },
  { schema: SCHEMA.replace(/sessions:.*/, 'sessions: { access: 2s, refresh: 8s, idle: 5s }') },
);
