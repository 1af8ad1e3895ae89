// @module-tag long
/** The first administrator: the token of the start makes one, once, and only while there is none. */
import { expect, test } from 'vitest';
import { SetupOffer } from '../../../src/auth/accounts/setup-offer.ts';
import { Auth } from '../../../src/auth/auth.ts';
import { newSecret } from '../../../src/auth/sessions/secrets.ts';
import { raw } from '../../../src/sql.ts';
import { cheapPasswords, describeOnOne } from '../../support/service.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, SCHEMA } from '../people.ts';

const setup = new SetupOffer();
const HOUR_MS = 3_600_000;

describeOnOne(
  'the first administrator',
  (service) => {
    const post = (token: string, email = newEmail('first'), password = PASSWORD) =>
      service.anonymous.post('/api/auth/setup', { token, email, password });
    const withoutAdmin = () => service.app.db.run(raw(`UPDATE "users" SET roles = '{}'`));
    function offered(startedAt?: number): string {
      const token = newSecret();
      setup.open(token, startedAt);
      return token;
    }

    test('the token makes an admin with a verified address, once', async () => {
      await withoutAdmin();
      const token = offered();
      const email = newEmail('first');
      expect(codeOf(await post(newSecret(), email))).toBe('404 not_found');
      const made = await post(token, email);
      expect([made.status, made.headers.get('cache-control'), made.body.user]).toEqual([
        201,
        'no-store',
        expect.objectContaining({ email, email_verified: true, roles: ['admin', 'member'] }),
      ]);
      const { client } = await login(service.anonymous, email);
      const [event] = (await client.get('/api/_audit?event=user_added')).body.data;
      expect(event).toMatchObject({ user_id: made.body.user.id, ip: '127.0.0.1', detail: { setup: true } });
      await withoutAdmin();
      expect(codeOf(await post(token))).toBe('404 not_found');
    });

    test('with an enabled admin the token opens nothing, and a disabled one does not count', async () => {
      await withoutAdmin();
      const admin = await service.user('admin');
      const token = offered();
      expect(codeOf(await post(token))).toBe('404 not_found');
      await service.app.auth.admin.setDisabled(admin.email, true);
      expect(codeOf(await post(token))).toBe('404 not_found');
      expect((await post(offered())).status).toBe(201);
    });

    test('a rejected address or password leaves the token', async () => {
      await withoutAdmin();
      const { email } = await newPerson(service.anonymous);
      const token = offered();
      expect(codeOf(await post(token, email))).toBe('409 email_taken');
      const weak = await post(token, newEmail(), 'password1');
      expect(weak.body.errors).toMatchObject([{ pointer: '/password', code: 'common_password' }]);
      expect((await post(token)).status).toBe(201);
    });

    test('ten concurrent requests make one admin', async () => {
      await withoutAdmin();
      const token = offered();
      const codes = (await Promise.all(Array.from({ length: 10 }, () => post(token)))).map(codeOf);
      expect(codes.toSorted()).toEqual(['201 undefined', ...Array(9).fill('404 not_found')]);
    });

    test('two processes with a token of their own make one admin', async () => {
      await withoutAdmin();
      const other = new SetupOffer();
      const [first, token] = [offered(), newSecret()];
      other.open(token);
      const { db, schema } = service.app;
      const parts = { db, schema, config: { baseUrl: service.url }, passwords: cheapPasswords(), setup: other };
      const second = await Auth.open(parts);
      const request = { token, email: newEmail('first'), password: PASSWORD, client: {} };
      const outcomes = await Promise.all([
        post(first).then(codeOf),
        second.admin.setUp(request).then(
          () => '201 undefined',
          ({ code }) => `404 ${code}`,
        ),
      ]);
      await second.close();
      expect(outcomes.toSorted()).toEqual(['201 undefined', '404 not_found']);
    });

    test('the token lasts for an hour', async () => {
      await withoutAdmin();
      expect(codeOf(await post(offered(Date.now() - HOUR_MS - 1)))).toBe('404 not_found');
      expect((await post(offered(Date.now() - HOUR_MS + 60_000))).status).toBe(201);
    });
  },
  { schema: SCHEMA, setup },
);

describeOnOne(
  'a service without an offer',
  (service) => {
    test('no request makes an admin', async () => {
      const body = { token: newSecret(), email: newEmail(), password: PASSWORD };
      expect(codeOf(await service.anonymous.post('/api/auth/setup', body))).toBe('404 not_found');
    });
  },
  { schema: SCHEMA },
);
