/** Invitations: who may send them, the account that they make, and the ways in which they end. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { describeOnOne, type User } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { newApiKey } from '../keyed.ts';
import { SmtpServer, tokenIn } from '../mail/smtp-server.ts';
import { codeOf, login, newEmail, PASSWORD } from '../people.ts';

const INVITING = `
roles:
  admin: {}
  lead: { assigns: [reader, writer] }
  writer: { includes: [reader] }
  reader: {}
guests: true
register: { roles: [reader], open: false }
mail: { app_name: Books, invite_url: 'https://app.example/join?token={token}', reply_to: help@example.org }
collections:
  teams: { fields: { name: { type: string, required: true } }, access: { list: true, read: true, create: true } }
  users:
    fields: { nick: { type: string, max: 10, unique: true }, level: int, seen_at: datetime, pay: { type: int, access: { write: [{ roles: [admin] }] } } }
    relations: { team: { kind: belongs_to, collection: teams } }
    access: { update: [{ roles: [lead, admin] }] }
`;

const smtp = new SmtpServer();
await smtp.start();
afterAll(() => smtp.close());

describeOnOne(
  'invitations',
  (service) => {
    let lead: User;
    let admin: User;
    beforeAll(async () => {
      [lead, admin] = [await service.user('lead'), await service.user('admin')];
    });
    const invite = (client: User['client'], email: string, body: object = {}) =>
      client.post('/api/users/invite', { email, roles: ['reader'], ...body });
    const confirm = (token: string, password = PASSWORD) =>
      service.anonymous.post('/api/auth/invite/confirm', { token, password });
    const tokenFor = async (email: string, nth = 1) => {
      await until(`mail ${nth} to ${email}`, () => smtp.to(email).length >= nth);
      return tokenIn(smtp.to(email)[nth - 1]!);
    };
    async function invited(body: object = {}, client = lead.client) {
      const email = newEmail('invited');
      const answer = await invite(client, email, body);
      expect([answer.status, answer.text]).toEqual([202, '']);
      return { email, token: await tokenFor(email) };
    }
    const listed = async (client: User['client']) =>
      (await client.get('/api/users/invites')).body.data as readonly { id: string; email: string }[];

    test('an invited person sets a password, once, and has the roles and a verified address', async () => {
      const { email, token } = await invited({ roles: ['writer'] });
      const { source } = smtp.to(email)[0]!;
      expect(source).toContain(`https://app.example/join?token=${token}`);
      expect(source).toContain('at Books.');
      expect(source).toContain('Reply-To: help@example.org');
      const weak = await confirm(token, 'password1');
      expect(weak.body.errors).toMatchObject([{ pointer: '/password', code: 'common_password' }]);
      const done = await confirm(token);
      expect([done.status, done.text, done.headers.getSetCookie()]).toEqual([204, '', []]);
      const person = await login(service.anonymous, email);
      expect((await person.client.get('/api/auth/me')).body.user).toMatchObject({
        email,
        email_verified: true,
        roles: ['writer'],
      });
      const again = await confirm(token);
      expect([codeOf(again), again.body.errors[0].code]).toEqual(['422 validation_failed', 'invalid_token']);
      const { data } = (await admin.client.get('/api/_audit?event=register&limit=1')).body;
      expect(data[0]).toMatchObject({ email, actor_id: lead.id });
      expect((await listed(lead.client)).map((each) => each.email)).not.toContain(email);
    });

    test('the token serves one of ten concurrent requests', async () => {
      const { token } = await invited();
      const codes = (await Promise.all(Array.from({ length: 10 }, () => confirm(token)))).map(codeOf);
      expect(codes.toSorted()).toEqual(['204 undefined', ...Array(9).fill('422 validation_failed')]);
    });

    test('each role needs one that assigns it, and so does an invitation without roles', async () => {
      const person = await service.user('writer');
      const key = await newApiKey(service, lead.client, { roles: ['reader'] });
      const answers = [
        await invite(lead.client, newEmail(), { roles: ['admin'] }),
        await invite(lead.client, newEmail(), { roles: ['reader', 'lead'] }),
        await invite(person.client, newEmail()),
        await invite(person.client, newEmail(), { roles: [] }),
        await invite(key.client, newEmail()),
        await invite(service.anonymous, newEmail()),
        await invite(lead.client, newEmail(), { roles: ['guest'] }),
        await invite(lead.client, newEmail(), { roles: ['raeder'] }),
        await invite(lead.client, 'nobody'),
        await invite(lead.client, person.email),
        await invite(admin.client, newEmail(), { roles: ['admin'] }),
      ];
      expect(answers.map(codeOf)).toEqual([
        ...Array(5).fill('403 forbidden'),
        '401 unauthenticated',
        ...Array(3).fill('422 validation_failed'),
        '409 email_taken',
        '202 undefined',
      ]);
      expect(answers[7]!.body.errors).toMatchObject([{ pointer: '/roles/0', code: 'unknown_role' }]);
    });

    test('data has fields of the user, by the rules of an update', async () => {
      const team = (await lead.client.post('/api/teams', { data: { name: 'red' } })).body.data.id;
      const data = { nick: 'Neo', level: 7, seen_at: '2030-01-02T03:04:05.000006Z', team };
      const { email, token } = await invited({ data });
      expect((await listed(lead.client)).find((each) => each.email === email)).toMatchObject({
        roles: ['reader'],
        data,
      });
      expect((await confirm(token)).status).toBe(204);
      const { client } = await login(service.anonymous, email);
      expect((await client.get('/api/auth/me')).body.user).toMatchObject(data);
      const refused = await Promise.all(
        [
          { nick: 'x'.repeat(11) },
          { nick: 7 },
          { nikc: 'x' },
          { roles: ['admin'] },
          { roles: { set: ['admin'] } },
          { email: 'other@example.org' },
          { email_verified: false },
          { disabled: true },
          { id: lead.id },
          { team: lead.id },
          { pay: 1 },
        ].map((each) => invite(lead.client, newEmail(), { data: each })),
      );
      expect(refused.map(codeOf)).toEqual([...Array(10).fill('422 validation_failed'), '403 forbidden']);
      expect(refused[0]!.body.errors).toMatchObject([{ pointer: '/data/nick' }]);
      expect((await invite(admin.client, newEmail(), { data: { pay: 1 } })).status).toBe(202);
      const count = raw(`SELECT 1 FROM "users" WHERE nick IS NOT NULL AND email LIKE 'someone%'`);
      expect(await service.app.db.rows(count)).toEqual([]);
    });

    test('a value that another user took since is reported by its name', async () => {
      const [first, second] = [
        await invited({ data: { nick: 'Trinity' } }),
        await invited({ data: { nick: 'Trinity' } }),
      ];
      expect((await confirm(first.token)).status).toBe(204);
      const taken = await confirm(second.token);
      expect([codeOf(taken), taken.body.detail]).toEqual([
        '409 unique_violation',
        'another user has the `nick` of this invitation; ask for a new one',
      ]);
      expect((await invite(lead.client, second.email, { data: { nick: 'Morpheus' } })).status).toBe(202);
      expect((await confirm(await tokenFor(second.email, 2))).status).toBe(204);
    });

    test('sending again replaces the token, the roles and the data', async () => {
      const { email, token } = await invited({ roles: ['writer'], data: { level: 1 } });
      expect((await invite(admin.client, email, { roles: ['reader'], data: { level: 2 } })).status).toBe(202);
      expect(codeOf(await confirm(token))).toBe('422 validation_failed');
      const next = await tokenFor(email, 2);
      expect((await listed(lead.client)).filter((each) => each.email === email)).toEqual([]);
      expect((await confirm(next)).status).toBe(204);
      const { client } = await login(service.anonymous, email);
      expect((await client.get('/api/auth/me')).body.user).toMatchObject({ roles: ['reader'], level: 2 });
    });

    test('makers see and take back their own, an admin all', async () => {
      const other = await service.user('lead');
      const { email, token } = await invited();
      const { id } = (await listed(lead.client)).find((each) => each.email === email)!;
      expect((await listed(other.client)).map((each) => each.email)).not.toContain(email);
      expect((await listed(admin.client)).map((each) => each.email)).toContain(email);
      const remove = (client: User['client']) => client.delete(`/api/users/invites/${id}`);
      expect(codeOf(await remove(other.client))).toBe('404 not_found');
      expect((await remove(lead.client)).status).toBe(204);
      expect(codeOf(await remove(admin.client))).toBe('404 not_found');
      expect(codeOf(await confirm(token))).toBe('422 validation_failed');
      expect(JSON.stringify(await listed(admin.client))).not.toContain('hash');
    });

    test('an invitation ends after seven days, and with its maker or with the right of its maker', async () => {
      const makers = [await service.user('lead'), await service.user('lead'), await service.user('lead')];
      const tokens = [];
      for (const { client } of makers) tokens.push((await invited({}, client)).token);
      await service.app.auth.admin.setDisabled(makers[0]!.email, true);
      await service.app.auth.admin.changeRoles(makers[1]!.email, { add: ['writer'], remove: ['lead'] });
      const { db } = service.app;
      await db.run(
        raw(
          `UPDATE "_auth_invites" SET expires_at = expires_at - interval '7 days' WHERE created_by = '${makers[2]!.id}'`,
        ),
      );
      for (const token of tokens) expect(codeOf(await confirm(token))).toBe('422 validation_failed');
      await service.app.auth.admin.setDisabled(makers[0]!.email, false);
      expect((await confirm(tokens[0]!)).status).toBe(204);
    });

    test('an account made meanwhile keeps its address', async () => {
      const { email, token } = await invited();
      await service.app.auth.admin.addUser({ email, password: PASSWORD, roles: [] });
      expect(codeOf(await confirm(token, 'another long phrase'))).toBe('409 email_taken');
      await login(service.anonymous, email);
      expect(codeOf(await invite(lead.client, email))).toBe('409 email_taken');
    });

    test('a guest who accepts is a guest no longer', async () => {
      const { token } = await invited();
      const guest = await service.anonymous.post('/api/auth/guest');
      const client = service.anonymous.with({ Authorization: `Bearer ${guest.body.access_token}` });
      expect((await client.post('/api/auth/invite/confirm', { token, password: PASSWORD })).status).toBe(204);
      expect(codeOf(await client.get('/api/teams'))).toBe('401 invalid_token');
    });

    test('the tables hold no token', async () => {
      const { token } = await invited();
      const tables = await Promise.all(
        ['_auth_invites', '_auth_outbox', '_auth_audit'].map((name) =>
          service.app.db.rows(raw(`SELECT t::text FROM "${name}" t`)),
        ),
      );
      expect(JSON.stringify(tables)).toContain('user_invited');
      expect(JSON.stringify(tables)).not.toContain(token);
    });

    test('other tokens open nothing', async () => {
      const { email: person } = await service.user('reader');
      await service.anonymous.post('/api/auth/password/reset/request', { email: person });
      const reset = await tokenFor(person);
      for (const token of [reset, 'x', 'A'.repeat(43)]) {
        expect(codeOf(await confirm(token))).toBe('422 validation_failed');
      }
    });
  },
  { schema: INVITING, env: { SMTP_URL: smtp.url } },
);
