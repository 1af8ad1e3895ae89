/** S10: what the audit trail did not have. */
import { expect, test } from 'vitest';
import { describeOnBoth } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD } from '../people.ts';

const SCHEMA = `
roles: { admin: {}, member: {} }
register: { roles: [member] }
limits: { login_account: 3 in 15m }
collections:
  teams:
    fields: { name: string }
    access: { list: true, read: true, create: true, delete: true }
  users:
    relations: { team: { kind: belongs_to, collection: teams, on_delete: cascade } }
    access: { list: true, read: true, update: true, delete: true }
`;

describeOnBoth(
  'S10: the audit trail',
  (service) => {
    const events = async (email: string) =>
      (await service.app.auth.admin.audit({ email, limit: 100 })).toReversed().map(({ event }) => event);
    const last = async (event: string) => (await service.app.auth.admin.audit({ event, limit: 1 }))[0]!;

    test('the trail records a reached limit once, not for every attempt', async () => {
      const { email, id } = await newPerson(service.anonymous.with({ 'X-Forwarded-For': '10.0.0.1' }));
      for (let i = 0; i < 6; i++) {
        const answer = await service.anonymous.post('/api/auth/login', { email, password: 'wrong password' });
        expect(codeOf(answer)).toBe(i < 3 ? '401 invalid_credentials' : '429 rate_limited');
      }
      expect(await events(email)).toEqual([
        'register',
        'login',
        'login_failed',
        'login_failed',
        'login_failed',
        'login_limited',
      ]);
      expect(await last('login_limited')).toMatchObject({
        user_id: id,
        ip: '127.0.0.1',
        detail: { limit: 'login-pair' },
      });
    });

    test('the trail records a deleted user, and the user who deleted it', async () => {
      const [victim, actor] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
      const answer = await actor.client.delete(`/api/users/${victim.id}`, { 'X-Request-Id': 'the-delete' });
      expect(answer.status).toBe(204);
      expect(await last('user_deleted')).toMatchObject({
        user_id: victim.id,
        actor_id: actor.id,
        ip: '127.0.0.1',
        request_id: 'the-delete',
        detail: { email: victim.email },
      });
      // Found by the address that it had.
      expect(await events(victim.email)).toEqual(['register', 'login', 'user_deleted']);
      expect(codeOf(await victim.client.get('/api/auth/me'))).toBe('401 invalid_token');
    });

    test('the trail records users that a cascade deletes, and their sessions end at once', async () => {
      const [victim, actor] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
      const team = (await actor.client.post('/api/teams', { data: { name: 'core' } })).body.data;
      expect((await victim.client.patch(`/api/users/${victim.id}`, { data: { team: team.id } })).status).toBe(200);
      expect((await actor.client.delete(`/api/teams/${team.id}`)).status).toBe(204);
      expect(await last('user_deleted')).toMatchObject({
        user_id: victim.id,
        actor_id: actor.id,
        detail: { email: victim.email, cascaded_from: { collection: 'teams', id: team.id } },
      });
      expect(codeOf(await victim.client.get('/api/auth/me'))).toBe('401 invalid_token');
    });

    test('the trail records changed roles, in the transaction that changes them', async () => {
      const { email } = await newPerson(service.anonymous);
      const root = { email: newEmail('root'), password: PASSWORD };
      await service.app.auth.admin.addUser({ ...root, roles: ['admin'] });
      const { client } = await login(service.anonymous, root.email);
      const { id } = (await client.get(`/api/users?email=${encodeURIComponent(email)}`)).body.data[0];
      expect((await client.patch(`/api/users/${id}`, { data: { roles: { add: ['admin'] } } })).status).toBe(200);
      expect(await last('roles_changed')).toMatchObject({
        user_id: id,
        ip: '127.0.0.1',
        detail: { from: ['member'], to: ['admin', 'member'] },
      });
    });

    test('the trail records a requested verification, and a link to a file', async () => {
      const person = await newPerson(service.anonymous);
      expect((await person.client.post('/api/auth/email/verify/request')).status).toBe(202);
      const expected = ['register', 'login', 'email_verification_requested'];
      await until('the mail is made', async () => (await events(person.email)).length === expected.length);
      expect(await events(person.email)).toEqual(expected);
      const body = new FormData();
      body.set('file', new Blob(['text']), 'a.txt');
      const headers = { Authorization: `Bearer ${person.access}` };
      const uploaded = await fetch(`${service.url}/api/files`, { method: 'POST', body, headers });
      const { data: file } = (await uploaded.json()) as { data: { id: string } };
      const answer = await person.client.post(`/api/files/${file.id}/link`);
      expect(answer.status).toBe(201);
      const made = await last('file_link_made');
      expect(made).toMatchObject({ user_id: person.id, detail: { file: file.id } });
      expect(JSON.stringify(made)).not.toContain(answer.body.url.split('token=')[1]);
    });
  },
  { schema: SCHEMA, env: { BYLAW_RATE_LIMIT: 'on' } },
);
