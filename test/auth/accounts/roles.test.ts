// @module-tag long
/** Roles: inclusion, assignment, how soon a change takes effect; and that users cannot write what policies trust. */
import { expect, test } from 'vitest';
import { describeOnBoth } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { codeOf, newPerson, SCHEMA } from '../people.ts';

const asCaller = (principal: string) => ({ principal, auth: { roles: [] } }) as never;

describeOnBoth(
  'roles',
  (service) => {
    test('a role gives its included roles, transitively, and appears as assigned', async () => {
      const lead = await service.user('lead');
      expect((await lead.client.get('/api/auth/me')).body.user.roles).toEqual(['lead']);
      expect((await lead.client.post('/api/notes', { data: { text: 'guests may' } })).status).toBe(201);
      const nobody = await service.user();
      await service.app.auth.admin.changeRoles(nobody.email, { add: [], remove: ['member'] });
      expect(codeOf(await nobody.client.post('/api/notes', { data: { text: 'x' } }))).toBe('403 forbidden');
      expect((await nobody.client.get('/api/auth/me')).body.user.roles).toEqual([]);
    });

    test('only a role that assigns a role can assign it', async () => {
      const [admin, lead, member, other] = [
        await service.user('admin'),
        await service.user('lead'),
        await newPerson(service.anonymous),
        await newPerson(service.anonymous),
      ];
      const change = (by: { client: typeof member.client }, roles: object) =>
        by.client.patch(`/api/users/${other.id}`, { data: { roles } });
      expect(codeOf(await change(member, { add: ['guest'] }))).toMatch(/^40[34]/);
      expect(
        (await member.client.patch(`/api/users/${member.id}`, { data: { roles: { add: ['admin'] } } })).status,
      ).toBe(403);
      expect(codeOf(await change(lead, { add: ['admin'] }))).toBe('403 forbidden');
      expect((await change(lead, { add: ['guest'] })).status).toBe(200);
      expect((await change(lead, { remove: ['guest'] })).status).toBe(200);
      expect((await change(admin, { add: ['lead'] })).status).toBe(200);
      expect((await service.app.auth.accounts.me(asCaller(other.id))).user.roles).toContain('lead');
      expect((await change(admin, { remove: ['lead', 'member'] })).status).toBe(200);
      expect((await service.app.auth.accounts.me(asCaller(other.id))).user.roles).toEqual([]);
    });

    test('a change acts within a second, by the bearer token and by the cookie', async () => {
      const admin = await service.user('admin');
      const person = await newPerson(service.anonymous);
      for (const by of ['client', 'cookieClient'] as const) {
        const may = async () => (await person[by].post('/api/ranked', { data: { name: 'x' } })).status === 201;
        expect(await may()).toBe(false);
        expect(
          (await admin.client.patch(`/api/users/${person.id}`, { data: { roles: { add: ['lead'] } } })).status,
        ).toBe(200);
        await until('the role is given', may);
        expect(
          (await admin.client.patch(`/api/users/${person.id}`, { data: { roles: { remove: ['lead'] } } })).status,
        ).toBe(200);
        await until('the role is taken', async () => !(await may()));
      }
    });

    test('a subject cannot write a field that policies trust, at registration or later', async () => {
      const person = await newPerson(service.anonymous);
      expect(codeOf(await person.client.get('/api/ranked'))).toBe('403 forbidden');
      const before = (await person.client.get('/api/auth/me')).body.user;
      for (const data of [
        { level: 9 },
        { email_verified: true },
        { email: 'other@example.org' },
        { id: person.id },
        { roles: { set: ['admin'] } },
        { disabled: false },
      ]) {
        const answer = await person.client.patch(`/api/users/${person.id}`, { data });
        expect([JSON.stringify(data), answer.status >= 400 && answer.status < 500]).toEqual([
          JSON.stringify(data),
          true,
        ]);
      }
      expect((await person.client.get('/api/auth/me')).body.user).toEqual(before);
      expect(codeOf(await person.client.get('/api/ranked'))).toBe('403 forbidden');
    });

    test('the audit trail records role changes', async () => {
      const person = await service.user();
      await service.app.auth.admin.changeRoles(person.email, { add: ['lead'], remove: ['member'] });
      const [row] = await service.app.auth.admin.audit({ email: person.email, event: 'roles_changed', limit: 1 });
      expect(row).toMatchObject({ user_id: person.id, detail: { from: ['member'], to: ['lead'] } });
      const admin = await service.user('admin');
      const { client } = admin;
      expect(
        (await client.patch(`/api/users/${person.id}`, { data: { roles: { set: ['member', 'guest'] } } })).status,
      ).toBe(200);
      expect((await client.patch(`/api/users/${person.id}`, { data: { roles: { add: ['guest'] } } })).status).toBe(200);
      const rows = await service.app.auth.admin.audit({ email: person.email, event: 'roles_changed', limit: 9 });
      expect(rows.map(({ detail, actor_id }) => ({ detail, actor_id }))).toEqual([
        { detail: { from: ['lead'], to: ['guest', 'member'] }, actor_id: admin.id },
        { detail: { from: ['member'], to: ['lead'] }, actor_id: null },
      ]);
    });
  },
  // The schema lets users write their own nick, not their level.
  {
    schema: `${SCHEMA}    access:
      read: [{ roles: [admin, lead] }, { when: '@record.id = @request.auth.id' }]
      list: '@record.id = @request.auth.id'
      update: '@record.id = @request.auth.id and @next.level = @record.level'
`,
  },
);

describeOnBoth(
  'a schema that lets users write a field',
  (service) => {
    test('a write takes effect within a second on rules that read the field', async () => {
      const person = await newPerson(service.anonymous);
      expect(codeOf(await person.client.get('/api/ranked'))).toBe('403 forbidden');
      expect((await person.client.patch(`/api/users/${person.id}`, { data: { level: 7 } })).status).toBe(200);
      await until('the level counts', async () => (await person.client.get('/api/ranked')).status === 200);
    });
  },
  { schema: SCHEMA },
);
