/** Facts of a session in rules: the second factor, and the time of the sign-in, which a confirmation renews. */
import { expect, test } from 'vitest';
import { raw, sql, uuid } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, refresh, tokensOf } from '../people.ts';

const SCHEMA = `
roles: [member, admin]
register: { roles: [member] }
guests: true
collections:
  vaults:
    fields: { opened_at: { type: datetime, default: '@request.auth.signed_in_at' } }
    access: { view: '@request.auth.second_factor', create: '@request.auth.signed_in_at > @now - 1h' }
  lobbies:
    fields: { title: string }
    access:
      view: 'not @request.auth.second_factor'
      create: true
`;

const sessionOf = (access: string): string =>
  JSON.parse(Buffer.from(access.split('.')[1]!, 'base64url').toString()).sid;

describeOnOne(
  'facts of a session',
  (service) => {
    const aged = async (access: string): Promise<void> => {
      const sid = sessionOf(access);
      await service.app.db.run(sql`
        UPDATE "_auth_sessions"
           SET created_at = created_at - interval '2 hours',
               signed_in_at = signed_in_at - interval '2 hours'
         WHERE id = ${uuid(sid)}`);
      await service.app.auth.authenticator.sessionChanged(sid);
    };

    test('a rule requires a recent sign-in, and a confirmation renews it', async () => {
      const person = await newPerson(service.anonymous);
      const open = () => person.client.post('/api/vaults', { data: {} });
      expect((await open()).status).toBe(201);
      await aged(person.access);
      expect(codeOf(await open())).toBe('403 forbidden');
      expect(codeOf(await person.client.post('/api/auth/confirm', { password: 'not it at all' }))).toBe(
        '401 invalid_credentials',
      );
      expect(codeOf(await open())).toBe('403 forbidden');
      const confirmed = await person.client.post('/api/auth/confirm', { password: PASSWORD });
      expect([confirmed.status, confirmed.headers.get('cache-control'), Object.keys(confirmed.body)]).toEqual([
        200,
        'no-store',
        ['signed_in_at'],
      ]);
      expect((await open()).status).toBe(201);
      expect((await person.cookieClient.post('/api/vaults', { data: {} })).status).toBe(201);
    });

    test('a refresh keeps the time of the sign-in', async () => {
      const person = await newPerson(service.anonymous);
      await aged(person.access);
      const next = tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh));
      expect(codeOf(await next.client.post('/api/vaults', { data: {} }))).toBe('403 forbidden');
      const { body } = await next.client.post('/api/auth/confirm', { password: PASSWORD });
      const again = tokensOf(service.anonymous, await refresh(service.anonymous, next.refresh));
      expect((await again.client.post('/api/vaults', { data: {} })).status).toBe(201);
      const [row] = await service.app.db.rows(
        raw('SELECT extract(epoch FROM opened_at) * 1000 FROM "vaults" ORDER BY id DESC LIMIT 1'),
      );
      expect(Math.floor(Number(row?.[0]))).toBe(Date.parse(body.signed_in_at));
    });

    test('a confirmation in one session leaves the others as they are', async () => {
      const person = await newPerson(service.anonymous);
      const other = await login(service.anonymous, person.email);
      for (const { access } of [person, other]) await aged(access);
      await person.client.post('/api/auth/confirm', { password: PASSWORD });
      expect((await person.client.post('/api/vaults', { data: {} })).status).toBe(201);
      expect((await other.client.post('/api/vaults', { data: {} })).status).toBe(403);
    });

    test('the second factor of users without one, of keys and of guests is false, and no key or guest has signed in', async () => {
      const email = newEmail('root');
      await service.app.auth.admin.addUser({ email, password: PASSWORD, roles: ['admin', 'member'] });
      const root = await login(service.anonymous, email);
      const made = await root.client.post('/api/auth/keys', { name: 'k', roles: ['member'] });
      const key = service.anonymous.with({ Authorization: `Bearer ${made.body.secret}` });
      const visit = await service.anonymous.post('/api/auth/guest');
      const guest = service.anonymous.with({ Authorization: `Bearer ${visit.body.access_token}` });
      for (const client of [root.client, key, guest]) {
        expect((await client.get('/api/lobbies')).status).toBe(200);
        expect((await client.get('/api/vaults')).status).toBe(403);
      }
      const created = [root.client, key, guest].map(
        async (client) => (await client.post('/api/vaults', { data: {} })).status,
      );
      expect(await Promise.all(created)).toEqual([201, 403, 403]);
      for (const client of [key, guest])
        expect(codeOf(await client.post('/api/auth/confirm', { password: PASSWORD }))).toBe('403 forbidden');
    });

    test('the second factor of a session is that of its row, on every node at once', async () => {
      const person = await newPerson(service.anonymous);
      const sid = sessionOf(person.access);
      await service.app.db.run(sql`UPDATE "_auth_sessions" SET second_factor = true WHERE id = ${uuid(sid)}`);
      await service.app.auth.authenticator.sessionChanged(sid);
      const statuses = async (path: string) => [
        (await person.client.get(path)).status,
        (await person.cookieClient.get(path)).status,
      ];
      expect(await statuses('/api/vaults')).toEqual([200, 200]);
      expect(await statuses('/api/lobbies')).toEqual([403, 403]);
      await person.client.post('/api/auth/confirm', { password: PASSWORD });
      expect(await statuses('/api/vaults')).toEqual([200, 200]);
    });
  },
  { schema: SCHEMA },
);

describeOnOne(
  'limits of confirmations',
  (service) => {
    test('wrong passwords of confirmations are counted as those of logins, and audited', async () => {
      const person = await newPerson(service.anonymous);
      for (let i = 0; i < 3; i++) await person.client.post('/api/auth/confirm', { password: 'not it at all' });
      expect(codeOf(await person.client.post('/api/auth/confirm', { password: PASSWORD }))).toBe('429 rate_limited');
      const events = (await service.app.auth.admin.audit({ userId: person.id, limit: 100 })).map(({ event }) => event);
      expect(events.filter((event) => event === 'confirmation_failed')).toHaveLength(3);
      expect(events).not.toContain('sign_in_confirmed');
    });
  },
  { schema: `${SCHEMA}limits: { login_account: 3 in 15m }\n`, env: { BYLAW_RATE_LIMIT: 'on' } },
);
