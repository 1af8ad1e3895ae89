/** The draft of a form: the texts of its controls, the write that they stand for, and its undo. */
import { expect, test } from 'vitest';
import { describeOnBoth } from '../support/service.ts';

/** Its types are those of a page. */
const { formData, linkedIdsOf, undoOf, addLink, removeLink } = await import(
  new URL('../../src/studio/pages/data/form/form-draft.ts', import.meta.url).href
);
const { RestoredTags } = await import(
  new URL('../../src/studio/pages/data/form/restored-tags.ts', import.meta.url).href
);

const SCHEMA = `
roles: { admin: {}, member: {} }
register: { roles: [member] }
collections:
  items:
    fields:
      title: { type: string, required: true, max: 200 }
    relations:
      tags: { kind: many_to_many, collection: tags }
    access: &open { list: true, read: true, create: [{ roles: [member] }], update: [{ roles: [member] }] }
  tags:
    fields: { label: string }
    access: *open
`;

test('links are added to the shown ones and removed from them, and each edit takes back the other', () => {
  const record = { id: 1, expand: { tags: [{ id: 'a' }, { id: 'b' }] } };
  const added = addLink('c');
  expect([added, linkedIdsOf('tags', record, added)]).toEqual([{ add: ['c'], remove: [] }, ['a', 'b', 'c']]);
  const both = removeLink('a', added);
  expect([both, linkedIdsOf('tags', record, both)]).toEqual([{ add: ['c'], remove: ['a'] }, ['b', 'c']]);
  expect(addLink('a', removeLink('c', both))).toEqual({ add: [], remove: [] });
  expect(linkedIdsOf('tags', undefined, added)).toEqual(['c']);
});

test('an undo has the former value of each member, null too; a change of a hidden value has none', () => {
  const field = (name: string) => ({ name, type: 'string', read_only: false });
  const collection = { fields: [field('a'), field('b')], relations: [] };
  const draft = { a: 'new', b: null };
  expect(undoOf(collection, draft, { id: 1, a: null, b: 'old' })).toEqual({ a: null, b: 'old' });
  expect(undoOf(collection, draft, { id: 1, a: null })).toBe(undefined);
});

test('undos of one record follow each other, also after a change that followed an undo', () => {
  const tags = new RestoredTags();
  // Two changes, from version 1 to 2 and from 2 to 3; the undo of the second one makes version 4 of version 2.
  tags.note('items/1', '"2.read"', '"4.written"');
  expect(tags.newest('items/1', '"2.written-gzip"')).toBe('"4.written"');
  expect(tags.newest('items/2', '"2.written"')).toBe('"2.written"');
  // A change to version 5 is undone, too.
  tags.note('items/1', '"4.read"', '"6.written"');
  expect(tags.newest('items/1', '"2.written"')).toBe('"6.written"');
  // A version that is made of the values comes back as it was.
  tags.note('items/1', '"6.read"', '"2.written"');
  expect(tags.newest('items/1', '"4.read"')).toBe('"2.written"');
});

describeOnBoth(
  'a draft',
  (service) => {
    test('an edit of one link keeps the links that the record does not show, and so does its undo', async () => {
      const { client } = await service.user();
      const collections: readonly { readonly name: string }[] = (await client.get('/api/_schema')).body.data
        .collections;
      const items = collections.find(({ name }) => name === 'items');
      const create = (collection: string, data: object): Promise<string> =>
        client.post(`/api/${collection}`, { data }).then(({ body }) => body.data.id);
      const ids: string[] = [];
      for (const from of [0, 60]) {
        const operations = Array.from({ length: 60 }, (_, i) => ({
          op: 'create',
          collection: 'tags',
          data: { label: `Tag ${from + i}` },
        }));
        const { body } = await client.post('/api/batch', { operations });
        ids.push(...body.data.map((each: { data: { id: string } }) => each.data.id));
      }
      const id = await create('items', { title: 'With 120 tags', tags: { add: ids } });
      const count = async (): Promise<number> => {
        const query = { filter: `id = "${id}"`, expand: { tags: { limit: 0, count: true } } };
        return (await client.post('/api/items/query', query)).body.data[0].expand.tags_count;
      };
      const before = (await client.get(`/api/items/${id}?expand=tags`)).body.data;
      expect([before.expand.tags.length, before.expand_more, await count()]).toEqual([100, ['tags'], 120]);
      const draft = { tags: removeLink(before.expand.tags[0].id) };
      expect((await client.patch(`/api/items/${id}`, { data: formData(items, draft) })).status).toBe(200);
      expect(await count()).toBe(119);
      expect((await client.patch(`/api/items/${id}`, { data: undoOf(items, draft, before) })).status).toBe(200);
      expect(await count()).toBe(120);
      // A tag that is added may be one of the others.
      expect(undoOf(items, { tags: addLink(ids[0]) }, before)).toBe(undefined);
    });
  },
  { schema: SCHEMA },
);
