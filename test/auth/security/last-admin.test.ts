/** An admin may not leave the service without one: not by roles, not by a delete, not through a cascade, not in a race. */
import { expect, test } from 'vitest';
import { param, sql } from '../../../src/sql.ts';
import { describeOnBoth } from '../../support/service.ts';
import { codeOf, login, newEmail, PASSWORD } from '../people.ts';

const SCHEMA = `
roles:
  admin: {}
  owner: { includes: [admin], assigns: [admin, owner, member] }
  member: {}
collections:
  teams:
    fields: { name: { type: string, required: true } }
    access: { list: true, read: true, create: true, delete: true }
  users:
    relations: { team: { kind: belongs_to, collection: teams, on_delete: cascade } }
    access: { list: true, read: true, update: true, delete: [{ roles: [admin] }] }
`;

describeOnBoth(
  'the last admin',
  (service) => {
    const person = async (...roles: readonly string[]) => {
      const { id, email } = await service.app.auth.admin.addUser({ email: newEmail(), password: PASSWORD, roles });
      const { client } = await login(service.anonymous, email);
      return { id, email, path: `/api/users/${id}`, client };
    };
    /** Admins of other tests become members. */
    const onlyAdmins = async (...ids: readonly string[]) => {
      await service.app.db.run(sql`
        UPDATE "users" SET roles = '{member}' WHERE id <> ALL(${param('uuid[]', ids)})`);
    };
    const LAST = '409 last_admin';

    test('the last admin cannot give up the role, alone or with fields; with another admin it can', async () => {
      const root = await person('admin', 'member');
      await onlyAdmins(root.id);
      for (const roles of [{ set: [] }, { remove: ['admin'] }, { set: ['member'] }]) {
        const answer = await root.client.patch(root.path, { data: { roles } });
        expect([codeOf(answer), answer.body.detail]).toEqual([
          LAST,
          'no enabled admin would be left; make another user an admin first',
        ]);
      }
      expect(codeOf(await root.client.patch(root.path, { data: { team: null, roles: { set: [] } } }))).toBe(LAST);
      expect((await root.client.get(root.path)).body.data.roles).toEqual(['admin', 'member']);
      // Keeping the role is not a loss, nor is having it through another role.
      expect((await root.client.patch(root.path, { data: { roles: { set: ['owner'] } } })).status).toBe(200);
      expect(codeOf(await root.client.patch(root.path, { data: { roles: { set: ['member'] } } }))).toBe(LAST);
      await person('admin');
      expect((await root.client.patch(root.path, { data: { roles: { set: ['member'] } } })).status).toBe(200);
    });

    test('the last admin is the last of the enabled users', async () => {
      const root = await person('admin');
      const disabled = await person('admin');
      await onlyAdmins(root.id, disabled.id);
      await service.app.auth.admin.setDisabled(disabled.email, true);
      expect(codeOf(await root.client.patch(root.path, { data: { roles: { set: [] } } }))).toBe(LAST);
      expect((await root.client.patch(disabled.path, { data: { roles: { set: [] } } })).status).toBe(200);
    });

    test('the last admin cannot be deleted, directly or by a cascade', async () => {
      const root = await person('admin');
      await onlyAdmins(root.id);
      expect(codeOf(await root.client.delete(root.path))).toBe(LAST);
      const team = (await root.client.post('/api/teams', { data: { name: 'core' } })).body.data;
      expect((await root.client.patch(root.path, { data: { team: team.id } })).status).toBe(200);
      expect(codeOf(await root.client.delete(`/api/teams/${team.id}`))).toBe(LAST);
      const heir = await person('admin');
      expect((await heir.client.delete(`/api/teams/${team.id}`)).status).toBe(204);
      expect(codeOf(await heir.client.get(root.path))).toBe('404 not_found');
    });

    test('two admins who demote or delete each other at once leave one admin', async () => {
      for (let round = 0; round < 5; round++) {
        const [one, two] = [await person('admin'), await person('admin')];
        await onlyAdmins(one.id, two.id);
        const answers = await Promise.all([
          one.client.patch(two.path, { data: { roles: { set: ['member'] } } }),
          round % 2 === 0
            ? two.client.patch(one.path, { data: { roles: { set: ['member'] } } })
            : two.client.delete(one.path),
        ]);
        const [rows] = await service.app.db.rows(sql`SELECT count(*) FROM "users" WHERE 'admin' = ANY(roles)`);
        // The slower one is rejected, or is no longer an admin when it is checked.
        expect([rows, answers.filter(({ status }) => status < 300).length]).toEqual([['1'], 1]);
      }
    });

    test('the command line can demote the last admin', async () => {
      const root = await person('admin');
      await onlyAdmins(root.id);
      const { roles } = await service.app.auth.admin.changeRoles(root.email, { add: [], remove: ['admin'] });
      expect(roles).toEqual([]);
    });
  },
  { schema: SCHEMA },
);
