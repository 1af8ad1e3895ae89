/** Roles that need a second factor, and the reset of one whose device is lost. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Client } from '../../support/client.ts';
import { describeOnOne } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { codeOfApp, newEnrolled } from '../authenticator.ts';
import { codeOf, login, newEmail, newPerson, PASSWORD, refresh, tokensOf } from '../people.ts';

const SCHEMA = `
roles:
  admin: { includes: [editor] }
  editor: { includes: [member] }
  member: {}
  auditor: {}
register: { roles: [member] }
second_factor: { required_for: [editor, auditor] }
collections:
  tags: { fields: { name: string }, access: { view: [{ roles: [member] }], create: [{ roles: [editor] }] } }
  users: { fields: { pay: { type: int, access: { read: [{ roles: [editor] }] } } } }
`;

describeOnOne(
  'roles that need a second factor',
  (service) => {
    const newUser = async (...roles: readonly string[]) => {
      const email = newEmail('careful');
      const { id } = await service.app.auth.admin.addUser({ email, password: PASSWORD, roles });
      return { id, email, ...(await login(service.anonymous, email)) };
    };
    const mayCreate = async (client: Client) =>
      (await client.post('/api/tags', { data: { name: 'x' } })).status === 201;
    const me = async (client: Client) => (await client.get('/api/auth/me')).body;
    const enrol = async (client: Client): Promise<string> => {
      const { secret } = (await client.post('/api/auth/totp/enrol')).body;
      expect((await client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) })).status).toBe(200);
      return secret;
    };

    test('a session has none of them until the user enrols, and keeps what they include', async () => {
      const user = await newUser('admin');
      expect([await mayCreate(user.client), await mayCreate(user.cookieClient)]).toEqual([false, false]);
      expect((await user.client.get('/api/tags')).status).toBe(200);
      expect(codeOf(await user.client.get('/api/_audit'))).toBe('403 forbidden');
      expect(codeOf(await user.client.post('/api/auth/keys', { name: 'k', roles: ['editor'] }))).toBe('403 forbidden');
      const before = await me(user.client);
      expect([before.second_factor, before.user.roles, 'pay' in before.user]).toEqual(['required', ['admin'], false]);
      const refreshed = tokensOf(service.anonymous, await refresh(service.anonymous, user.refresh));
      expect(await mayCreate(refreshed.client)).toBe(false);

      await enrol(refreshed.client);
      expect([await mayCreate(refreshed.client), await mayCreate(refreshed.cookieClient)]).toEqual([true, true]);
      const after = await me(refreshed.client);
      expect([after.second_factor, 'pay' in after.user]).toEqual(['used', true]);
      expect((await refreshed.client.get('/api/_audit')).status).toBe(200);
    });

    test('an older session gets them by a code, not by the password', async () => {
      const user = await newUser('editor');
      const older = await login(service.anonymous, user.email);
      const secret = await enrol(user.client);
      expect([await mayCreate(older.client), (await me(older.client)).second_factor]).toEqual([false, 'required']);
      await older.client.post('/api/auth/confirm', { password: PASSWORD });
      expect(await mayCreate(older.client)).toBe(false);
      expect((await older.client.post('/api/auth/confirm', { code: codeOfApp(secret, 1) })).status).toBe(200);
      expect(await mayCreate(older.client)).toBe(true);
    });

    test('a user without such a role needs no second factor, and a removed one takes the roles away', async () => {
      const plain = await newPerson(service.anonymous);
      const other = await login(service.anonymous, plain.email);
      expect((await me(plain.client)).second_factor).toBe('none');
      await enrol(plain.client);
      expect([(await me(plain.client)).second_factor, (await me(other.client)).second_factor]).toEqual([
        'used',
        'enrolled',
      ]);

      const user = await newUser('editor');
      await enrol(user.client);
      expect(await mayCreate(user.client)).toBe(true);
      await user.client.send('DELETE', '/api/auth/totp', { json: { password: PASSWORD } });
      expect([await mayCreate(user.client), (await me(user.client)).second_factor]).toEqual([false, 'required']);
    });

    test('a role that is given later acts at once, also the lack of it', async () => {
      const person = await newPerson(service.anonymous);
      await service.app.auth.admin.changeRoles(person.email, { add: ['editor'], remove: [] });
      expect([await mayCreate(person.client), (await me(person.client)).second_factor]).toEqual([false, 'required']);
    });

    test('an administrator with a second factor resets that of a user, which is audited and mailed', async () => {
      const [root, lost] = [await newUser('admin'), await newEnrolled(service.anonymous)];
      const reset = (client: Client, id = lost.id) => client.post(`/api/users/${id}/second-factor/reset`);
      expect(codeOf(await reset(root.client))).toBe('403 forbidden');
      await enrol(root.client);
      expect(codeOf(await reset(lost.client))).toBe('403 forbidden');
      expect((await reset(root.client)).status).toBe(204);
      expect((await login(service.anonymous, lost.email)).access).toBeDefined();
      expect((await me(lost.client)).second_factor).toBe('none');
      expect(codeOf(await reset(root.client))).toBe('404 not_found');
      expect(codeOf(await reset(root.client, '00000000-0000-4000-8000-000000000000'))).toBe('404 not_found');
      const [event] = await service.app.auth.admin.audit({ userId: lost.id, event: 'second_factor_reset', limit: 1 });
      expect(event).toMatchObject({ actor_id: root.id, user_id: lost.id });
      const folder = join(service.app.config.data, 'mail');
      const mails = async (): Promise<readonly string[]> => {
        const texts = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')));
        return texts.filter((text) => text.includes(lost.email));
      };
      // The enrolment and the reset have a mail each.
      await until('both mails are there', async () => (await mails()).length === 2);
      for (const text of await mails()) expect(text).toContain('second factor');
    });
  },
  { schema: SCHEMA },
);
