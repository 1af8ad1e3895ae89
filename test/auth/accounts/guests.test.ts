// @module-tag long
/** Guests: visitors who are not signed in, from their first request to the login that ends it. */
import { beforeAll, describe, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnBoth, describeOnOne } from '../../support/service.ts';
import { GUESTS_SCHEMA } from '../keyed.ts';
import {
  codeOf,
  cookieOf,
  login,
  newEmail,
  newPerson,
  PASSWORD,
  refresh,
  TOKEN_KEYS,
  type Tokens,
  tokensOf,
} from '../people.ts';

describeOnBoth(
  'guests',
  (service) => {
    const beGuest = () => service.anonymous.post('/api/auth/guest');
    async function newGuest(): Promise<Tokens> {
      const answer = await beGuest();
      if (answer.status !== 201) throw new Error(answer.text);
      return tokensOf(service.anonymous, { ...answer, status: 200 });
    }
    /** Tests that no token of the guest opens anything. */
    async function expectOver(guest: Tokens): Promise<void> {
      const answers = await Promise.all([
        guest.client.get('/api/books'),
        guest.cookieClient.get('/api/books'),
        refresh(service.anonymous, guest.refresh),
      ]);
      expect(answers.map(codeOf)).toEqual(['401 invalid_token', '401 unauthenticated', '401 invalid_token']);
    }
    beforeAll(async () => {
      const writer = await service.user('writer');
      for (const data of [{ title: 'Emma' }, { title: 'Draft', shown: false }]) {
        expect((await writer.client.post('/api/books', { data })).status).toBe(201);
      }
      await writer.client.post('/api/cards', { data: { text: 'private' } });
    });

    test('the 401 of a visitor names the way to a session', async () => {
      const { body } = await service.anonymous.get('/api/books');
      expect(body.detail).toContain('; visitors begin with `POST /api/auth/guest`');
    });

    test('a guest gets tokens and a cookie, and no account', async () => {
      const answer = await beGuest();
      expect([answer.status, Object.keys(answer.body)]).toEqual([201, TOKEN_KEYS]);
      expect(answer.body).toMatchObject({
        token_type: 'Bearer',
        refresh_expires_in: 86_400,
        user: { roles: ['guest'] },
      });
      expect(Object.keys(answer.body.user)).toEqual(['roles']);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.getSetCookie()[0]).toContain('Max-Age=86400; HttpOnly; SameSite=Lax');
      const { client, cookieClient } = tokensOf(service.anonymous, { ...answer, status: 200 });
      for (const each of [client, cookieClient]) {
        expect((await each.get('/api/books')).body.data.map(({ title }: { title: string }) => title)).toEqual(['Emma']);
      }
    });

    test('no rule that compares with the caller is true, negated or not', async () => {
      const { client } = await newGuest();
      expect(codeOf(await client.get('/api/cards'))).toBe('403 forbidden');
      expect(codeOf(await client.get('/api/users'))).toBe('403 forbidden');
      expect((await client.get('/api/shelves')).status).toBe(200);
      expect((await client.post('/api/wishes', { data: { text: 'x' } })).status).toBe(201);
      expect(codeOf(await client.post('/api/books', { data: { title: 'x' } }))).toBe('403 forbidden');
    });

    test('a guest has no sessions to list, no profile, no password and no keys', async () => {
      const { client } = await newGuest();
      const codes = await Promise.all([
        client.get('/api/auth/me'),
        client.get('/api/auth/sessions'),
        client.post('/api/auth/password', { password: 'x', new_password: 'y' }),
        client.post('/api/auth/email/verify/request'),
        client.post('/api/auth/keys', { name: 'x', roles: ['guest'] }),
      ]);
      expect(codes.map(codeOf)).toEqual(Array(5).fill('403 forbidden'));
    });

    test('a guest refreshes, and its tokens work once', async () => {
      const guest = await newGuest();
      const answer = await refresh(service.anonymous, guest.refresh);
      expect(answer.body.user).toEqual({ roles: ['guest'] });
      const next = tokensOf(service.anonymous, answer);
      expect(next.cookie).toBe(guest.cookie);
      expect((await next.client.get('/api/books')).status).toBe(200);
      await refresh(service.anonymous, next.refresh);
      expect(codeOf(await refresh(service.anonymous, guest.refresh))).toBe('401 refresh_reused');
      await expectOver(next);
    });

    test('a guest logs out', async () => {
      const guest = await newGuest();
      expect((await guest.cookieClient.post('/api/auth/logout')).status).toBe(204);
      await expectOver(guest);
    });

    test('a login and a registration from a guest end its session; a wrong password does not', async () => {
      const { email } = await newPerson(service.anonymous);
      const [one, two, three] = [await newGuest(), await newGuest(), await newGuest()];
      const wrong = await one.cookieClient.post('/api/auth/login', { email, password: 'wrong password' });
      expect(codeOf(wrong)).toBe('401 invalid_credentials');
      expect((await one.client.get('/api/books')).status).toBe(200);
      const person = await login(one.cookieClient, email);
      expect(person.cookie).not.toBe(one.cookie);
      await login(two.client, email);
      expect(
        (await three.cookieClient.post('/api/auth/register', { email: newEmail(), password: PASSWORD })).status,
      ).toBe(201);
      for (const guest of [one, two, three]) await expectOver(guest);
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
    });

    test('a login in the browser of another user ends nothing of that user', async () => {
      const [ann, bob] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
      await login(ann.cookieClient, bob.email);
      expect((await ann.client.get('/api/auth/me')).status).toBe(200);
    });

    test('a guest lasts for 24 hours at most, refreshed or not', async () => {
      const guest = await newGuest();
      const age = (hours: number) =>
        service.app.db.run(
          raw(`UPDATE "_auth_sessions" SET created_at = created_at - interval '${hours} hours' WHERE kind = 'guest'`),
        );
      await age(23);
      const next = await refresh(service.anonymous, guest.refresh);
      expect(next.body.refresh_expires_in).toBeLessThanOrEqual(3_600);
      await age(2);
      await expectOver(tokensOf(service.anonymous, next));
    });

    test('a write with the cookie of a guest must come from the own site', async () => {
      const { cookieClient } = await newGuest();
      const post = (headers: Record<string, string>) =>
        cookieClient.post('/api/wishes', { data: { text: 'x' } }, headers);
      expect(codeOf(await post({ 'Sec-Fetch-Site': 'cross-site' }))).toBe('403 cross_origin');
      expect(
        codeOf(await service.anonymous.post('/api/auth/guest', undefined, { 'Sec-Fetch-Site': 'cross-site' })),
      ).toBe('403 cross_origin');
      expect(cookieOf(await beGuest(), 'svc_session')).not.toBe(cookieOf(await beGuest(), 'svc_session'));
    });

    test('the idempotency key of a guest is its own', async () => {
      const [one, two] = [await newGuest(), await newGuest()];
      const post = ({ client }: Tokens, text: string) =>
        client.post('/api/wishes', { data: { text } }, { 'Idempotency-Key': 'same' });
      expect([(await post(one, 'a')).status, (await post(two, 'b')).status]).toEqual([201, 201]);
      expect(codeOf(await post(one, 'b'))).toBe('422 idempotency_mismatch');
    });

    test('the audit trail and the tables hold no token of a guest', async () => {
      const guest = await newGuest();
      const tables = await Promise.all(
        ['_auth_sessions', '_auth_refresh_tokens', '_auth_audit'].map((name) =>
          service.app.db.rows(raw(`SELECT t::text FROM "${name}" t`)),
        ),
      );
      const text = JSON.stringify(tables);
      expect(text).toContain('guest_started');
      for (const secret of [guest.access, guest.refresh, guest.cookie.split('=')[1]!])
        expect(text).not.toContain(secret);
    });
  },
  { schema: GUESTS_SCHEMA },
);

describeOnOne(
  'a schema without guests',
  (service) => {
    test('nobody becomes a guest, and the sessions and keys of former guests open nothing', async () => {
      expect(codeOf(await service.anonymous.post('/api/auth/guest'))).toBe('404 not_found');
      const admin = await service.user('admin');
      const answer = await admin.client.post('/api/auth/keys', { name: 'x', publishable: true });
      expect([codeOf(answer), answer.body.errors[0].pointer]).toEqual(['422 validation_failed', '/publishable']);
      const person = await newPerson(service.anonymous);
      await service.app.db.run(
        raw(`
        UPDATE "_auth_sessions" s SET kind = 'guest', user_id = NULL, principal = s.id
          FROM "users" u WHERE u.id = s.user_id AND u.email = '${person.email}'`),
      );
      const { data } = (await admin.client.post('/api/auth/keys', { name: 'x', roles: ['reader'] })).body;
      expect(data.roles).toEqual(['reader']);
      await service.app.db.run(raw(`UPDATE "_auth_api_keys" SET publishable = true`));
      await service.app.auth.authenticator.sessionEnded(data.id);
      expect(codeOf(await refresh(service.anonymous, person.refresh))).toBe('401 invalid_token');
      expect(codeOf(await person.cookieClient.get('/api/books'))).toBe('401 unauthenticated');
    });
  },
  { schema: GUESTS_SCHEMA.replace('guests: true\n', '').replaceAll('reader, guest', 'reader') },
);

describe('the number of guests', () => {
  describeOnOne(
    'limited',
    (service) => {
      test('an address starts so many sessions of guests, and no more', async () => {
        const answers = await Promise.all(Array.from({ length: 6 }, () => service.anonymous.post('/api/auth/guest')));
        expect(answers.map(codeOf).toSorted()).toEqual([
          ...Array(4).fill('201 undefined'),
          ...Array(2).fill('429 rate_limited'),
        ]);
      });
    },
    { schema: `${GUESTS_SCHEMA}limits: { guest: 4 in 1h }\n`, env: { BYLAW_RATE_LIMIT: 'on' } },
  );
});
