// @module-tag partitions
/** "Users" of the interface: the collection routes of users under their own rules, and the assignment of roles. */
import { beforeAll, describe, expect, test } from 'vitest';
import { idsOf, NOBODY, outcomeOf } from '../support/records.ts';
import { describeRoutes, makePeople, ROUTES_SCHEMA, type User } from '../support/service.ts';

describeRoutes(
  'users',
  (service) => {
    let ann: User;
    let bob: User;
    let ed: User;
    let root: User;
    beforeAll(async () => {
      ({ ann, bob, ed, root } = await makePeople(service));
    });
    const patch = (who: User, whom: User, data: object) => who.client.patch(`/api/users/${whom.id}`, { data });

    test('users look the same in every route, and never show a password or a hash', async () => {
      const read = await ann.client.get(`/api/users/${ann.id}`);
      const me = await ann.client.get('/api/auth/me');
      const listed = await ann.client.get('/api/users');
      expect(read.body.data).toEqual({
        id: ann.id,
        email: ann.email,
        email_verified: true,
        roles: ['member'],
        created_at: expect.any(String),
        updated_at: expect.any(String),
        nick: null,
      });
      expect(me.body.user).toEqual(read.body.data);
      expect(listed.body.data).toEqual([read.body.data]);
      expect(read.text + me.text + listed.text).not.toMatch(/argon2|password|hash/);
    });

    test('users see themselves, an admin sees all, and deletes are denied', async () => {
      expect(outcomeOf(await ann.client.get(`/api/users/${bob.id}`))).toEqual([404, 'not_found']);
      expect(idsOf((await root.client.get('/api/users?limit=100')).body.data)).toEqual(
        expect.arrayContaining([ann.id, bob.id, ed.id, root.id]),
      );
      for (const user of [ann, root])
        expect(outcomeOf(await user.client.delete(`/api/users/${ann.id}`))).toEqual([403, 'forbidden']);
    });

    test('there is no POST', async () => {
      expect(outcomeOf(await root.client.post('/api/users', { data: { email: 'x@example.org' } }))).toEqual([
        405,
        'method_not_allowed',
      ]);
    });

    test('filters', async () => {
      expect(idsOf((await root.client.get(`/api/users?email=${encodeURIComponent(ann.email)}`)).body.data)).toEqual([
        ann.id,
      ]);
      expect(outcomeOf(await root.client.get('/api/users?password=x'))).toEqual([
        400,
        'filter_unknown_key',
        'password filter_unknown_key',
      ]);
    });

    test('a user changes its own fields, but neither the email nor what the server sets', async () => {
      expect((await patch(ann, ann, { nick: 'Ann' })).body.data.nick).toBe('Ann');
      expect((await ann.client.get('/api/auth/me')).body.user.nick).toBe('Ann');
      for (const [name, value] of Object.entries({ email: 'other@example.org', email_verified: true, id: NOBODY })) {
        expect(outcomeOf(await patch(ann, ann, { [name]: value }))).toEqual([
          422,
          'validation_failed',
          `/data/${name} read_only`,
        ]);
      }
      expect(outcomeOf(await patch(ann, ann, { password: 'x' }))).toEqual([
        422,
        'validation_failed',
        '/data/password unknown_field',
      ]);
      expect(outcomeOf(await patch(bob, ann, { nick: 'x' }))).toEqual([404, 'not_found']);
    });

    describe('roles', () => {
      test('need a role that assigns each one given or taken', async () => {
        const cid = await service.user('member');
        expect(outcomeOf(await patch(cid, cid, { roles: { add: ['admin'] } }))).toEqual([403, 'forbidden']);
        expect(outcomeOf(await patch(cid, cid, { roles: { remove: ['member'] } }))).toEqual([403, 'forbidden']);
        // An editor may assign `member`, but does not see other users.
        expect(outcomeOf(await patch(ed, cid, { roles: { remove: ['member'] } }))).toEqual([404, 'not_found']);
        expect(outcomeOf(await patch(ed, ed, { roles: { add: ['admin'] } }))).toEqual([403, 'forbidden']);
        expect((await patch(ed, ed, { roles: { add: ['member'] } })).body.data.roles).toEqual(['editor', 'member']);
        expect((await patch(root, cid, { roles: { set: ['editor'] } })).body.data.roles).toEqual(['editor']);
      });

      test('an admin needs no update rule for them, but one for fields', async () => {
        expect(outcomeOf(await patch(root, ann, { nick: 'x' }))).toEqual([403, 'forbidden']);
        expect((await patch(root, ann, { roles: { add: ['editor'], remove: ['editor'] } })).status).toBe(200);
      });

      test.each([
        [{ roles: ['member'] }, '/data/roles wrong_type'],
        [{ roles: {} }, '/data/roles empty_operation'],
        [{ roles: { put: [] } }, '/data/roles/put unknown_operation'],
        [{ roles: { add: ['nope'] } }, '/data/roles/add/0 unknown_role'],
        [{ roles: { add: 'member' } }, '/data/roles/add wrong_type'],
      ])('%j is not valid', async (data, error) => {
        expect(outcomeOf(await patch(root, bob, data))).toEqual([422, 'validation_failed', error]);
      });
    });
  },
  { schema: ROUTES_SCHEMA.replace('collections:\n', 'collections:\n  users: { fields: { nick: string } }\n') },
);
