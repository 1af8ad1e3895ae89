// @module-tag long
/** Ancestors in the filters of queries: a chain ends before a record that the caller may not read, and says nothing of what is above it. */
import { beforeAll, expect, test } from 'vitest';
import { describeRoutes, type User } from '../../support/service.ts';

const SCHEMA = `
roles: [member, admin]
register: { roles: [member] }
collections:
  folders:
    fields: { name: { type: string, required: true, index: true, max: 50 } }
    relations:
      parent:
        kind: belongs_to
        collection: folders
        on_delete: cascade
        access: { read: [{ roles: [admin] }, { when: '@record.name != "sealed"' }] }
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access:
      view: [{ roles: [admin] }, { when: '@record.owner = @request.auth.id' }]
      create: true
      update: [{ roles: [admin] }]
  documents:
    fields: { title: { type: string, required: true, search: true } }
    relations: { folder: { kind: belongs_to, collection: folders } }
    access: { view: true, create: true, update: [{ roles: [admin] }] }
  places:
    # The statement about a chain has a column of this name.
    fields: { name: { type: string, required: true, index: true }, place: int }
    relations:
      parent: { kind: belongs_to, collection: places, access: { read: '@record.keeper = @request.auth.id' } }
      keeper: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access: { view: true, create: true, delete: 'any(ancestors(@record.parent by parent) as p, p.name = "top")' }
  things:
    fields: { title: { type: string, required: true } }
    relations: { place: { kind: belongs_to, collection: places } }
    access: { view: true, create: true }
`;

describeRoutes(
  'ancestors in filters',
  (service) => {
    let root: User;
    let bob: User;
    const ids: Record<string, string> = {};

    const make = async (user: User, collection: string, data: object): Promise<string> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const found = async (filter: string, params: object = {}, user = bob): Promise<unknown> => {
      const { body, text } = await user.client.post('/api/documents/query', { filter, params, sort: ['title'] });
      return body.data?.map(({ title }: { title: string }) => title) ?? text;
    };
    /** A folder of Bob's below a hidden one, below one of his again. */
    beforeAll(async () => {
      [root, bob] = await Promise.all([service.user('admin'), service.user()]);
      ids.top = await make(bob, 'folders', { name: 'top' });
      ids.secret = await make(root, 'folders', { name: 'secret', parent: ids.top });
      ids.own = await make(bob, 'folders', { name: 'own' });
      const { status } = await root.client.patch(`/api/folders/${ids.own}`, { data: { parent: ids.secret } });
      expect(status).toBe(200);
      ids.below = await make(bob, 'folders', { name: 'below', parent: ids.own });
      ids.sealed = await make(bob, 'folders', { name: 'sealed', parent: ids.top });
      await make(root, 'documents', { title: 'hidden', folder: ids.secret });
      await make(bob, 'documents', { title: 'mine', folder: ids.below });
      await make(bob, 'documents', { title: 'none', folder: null });
      await make(bob, 'documents', { title: 'sealed', folder: ids.sealed });
      await make(bob, 'documents', { title: 'top', folder: ids.top });
    });

    test('a record whose own step up is hidden is the last of the chain', async () => {
      const house = await make(bob, 'places', { name: 'house' });
      const floor = await make(root, 'places', { name: 'floor', parent: house });
      const room = await make(bob, 'places', { name: 'room', parent: floor });
      await make(bob, 'things', { title: 'chair', place: room });
      const things = async (condition: string, id: string, user = bob): Promise<number> => {
        const filter = `any(ancestors(place by parent) as p, ${condition})`;
        return (await user.client.post('/api/things/query', { filter, params: { id } })).body.data.length;
      };
      // The first condition lists the descendants, the second reads each chain.
      for (const condition of ['p = $id', 'p = $id and p.name contains ""']) {
        const seen = [room, floor, house].map((id) => things(condition, id));
        expect([condition, ...(await Promise.all(seen))]).toEqual([condition, 1, 1, 0]);
      }
    });

    test.each([
      ['any(ancestors(folder by parent) as f, f.name = "own")', ['mine'], ['mine']],
      ['any(ancestors(folder by parent) as f, f.name = "secret")', [], ['hidden', 'mine']],
      ['any(ancestors(folder by parent) as f, f.name = "top")', ['top'], ['hidden', 'mine', 'sealed', 'top']],
      ['any(ancestors(folder by parent) as f, f.name contains "top")', ['top'], ['hidden', 'mine', 'sealed', 'top']],
      ['any(ancestors(folder by parent) as f, f = $top)', ['top'], ['hidden', 'mine', 'sealed', 'top']],
      // The parent of this one is hidden, but not the folder itself.
      ['any(ancestors(folder by parent) as f, f.name = "sealed")', ['sealed'], ['sealed']],
      ['any(ancestors(folder by parent) as f, f = $secret)', [], ['hidden', 'mine']],
      ['none(ancestors(folder by parent) as f, f.name = "secret")', ['mine', 'sealed', 'top'], ['sealed', 'top']],
      ['all(ancestors(folder by parent) as f, f.name != "secret")', ['mine', 'sealed', 'top'], ['sealed', 'top']],
      // The embedded planner finds other queries too expensive if records may be hidden.
      ['count(ancestors(folder by parent)) = 2', ['mine'], undefined],
      ['count(ancestors(folder by parent)) >= 3', [], undefined],
      ['count(ancestors(folder by parent)) >= 1', ['mine', 'sealed', 'top'], ['hidden', 'mine', 'sealed', 'top']],
    ])('%s', async (filter, forBob, forRoot) => {
      const params = {
        ...(filter.includes('$top') && { top: ids.top }),
        ...(filter.includes('$secret') && { secret: ids.secret }),
      };
      expect(await found(filter, params)).toEqual(forBob);
      if (forRoot !== undefined) expect(await found(filter, params, root)).toEqual(forRoot);
    });

    test('a chain of 32 that ends before a hidden record is whole', async () => {
      const hidden = await make(root, 'folders', { name: 'the 33rd' });
      let folder = await make(bob, 'folders', { name: 'the 32nd' });
      expect((await root.client.patch(`/api/folders/${folder}`, { data: { parent: hidden } })).status).toBe(200);
      for (let i = 31; i > 0; i--) folder = await make(bob, 'folders', { name: `folder ${i}`, parent: folder });
      await make(bob, 'documents', { title: 'deep', folder });
      const isDeep = 'title = "deep" and none(ancestors(folder by parent) as f, f.name = "nowhere")';
      expect(await found(isDeep)).toEqual(['deep']);
      // A caller who sees the next folder cannot know its parents.
      expect(await found(isDeep, {}, root)).toEqual([]);
    });

    test('an explanation of a rule about a chain counts its places, whatever the fields are called', async () => {
      const top = await make(root, 'places', { name: 'top', place: 1 });
      const below = await make(root, 'places', { name: 'below', parent: top });
      const question = { collection: 'places', action: 'delete', id: below, as: root.id };
      const { status, body, text } = await root.client.post('/api/_explain', question);
      expect([status, body.data?.allowed], text).toEqual([200, true]);
    });

    test('a search knows neither letter case nor accents, here too', async () => {
      expect(await found('title matches $q', { q: 'MÏN' })).toEqual(['mine']);
      expect(await found('folder.name = "top" or title matches "NONE"')).toEqual(['none', 'top']);
    });
  },
  { schema: SCHEMA },
);
