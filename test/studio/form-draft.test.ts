/** The draft of a form: the texts of its controls, their write, and its undo. */
import { expect, test } from 'vitest';
import type { Client } from '../support/client.ts';
import { describeOnBoth } from '../support/service.ts';

/** Its types are those of a page. */
const { checkedData, controlTextOf, formData, formMembersOf, linkedIdsOf, newMembersOf, undoOf, addLink, removeLink } =
  await import(new URL('../../src/studio/pages/data/form/form-draft.ts', import.meta.url).href);
const { idOfText } = await import(new URL('../../src/studio/pages/data/id-text.ts', import.meta.url).href);
const { termOf } = await import(new URL('../../src/studio/pages/data/filter-terms.ts', import.meta.url).href);
const { RestoredTags } = await import(
  new URL('../../src/studio/pages/data/form/restored-tags.ts', import.meta.url).href
);

const JSON_EXPECTED = 'JSON is expected, such as {"a": 1}, ["a", "b"] or "text".';

const SCHEMA = `
roles: { admin: {}, member: {} }
register: { roles: [member] }
collections:
  items:
    fields:
      title: { type: string, required: true, max: 200 }
      meta: json
      labels: { type: list, of: string }
      spot: point
    relations:
      tags: { kind: many_to_many, collection: tags }
    access: &open { list: true, read: true, create: [{ roles: [member] }], update: [{ roles: [member] }] }
  tags:
    fields: { label: string }
    access: *open
  orders:
    id: { type: int }
    fields: { note: string }
    access: *open
  days:
    id: { type: int, made_by: caller }
    fields: { note: string }
    access: *open
  customers:
    id: { type: string }
    fields: { name: string }
    relations:
      order: { kind: belongs_to, collection: orders }
      orders: { kind: many_to_many, collection: orders }
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
  const collection = { key: { made_by: 'service' }, fields: [field('a'), field('b')], relations: [] };
  const draft = { a: 'new', b: null };
  expect(undoOf(collection, draft, { id: 1, a: null, b: 'old' })).toEqual({ a: null, b: 'old' });
  expect(undoOf(collection, draft, { id: 1, a: null })).toBe(undefined);
});

test('a text becomes an int id where it is one', () => {
  expect(['7', '-7', '007', '7.0', '9007199254740993', 'x'].map((text) => idOfText('int', text))).toEqual([
    7,
    -7,
    7,
    '7.0',
    '9007199254740993',
    'x',
  ]);
  expect(['string', 'uuid', undefined].map((type) => idOfText(type, '7'))).toEqual(['7', '7', '7']);
});

test('a number that no double holds is sent as it was written, so that the service reports it', () => {
  const field = (type: string) => ({ name: type, type, read_only: false });
  const collection = { key: { made_by: 'service' }, fields: ['int', 'float', 'json'].map(field), relations: [] };
  expect(formData(collection, { int: '-1e400', float: '1e999' })).toEqual({ int: '-1e400', float: '1e999' });
  expect(formData(collection, { int: '-1e3', float: '1e99' })).toEqual({ int: -1000, float: 1e99 });
  expect(() => checkedData(collection, { json: '{"a":[1e999]}' })).toThrow(
    expect.objectContaining({ fields: { json: JSON_EXPECTED } }),
  );
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

interface Served {
  readonly name: string;
  readonly fields: readonly { readonly name: string; readonly type: string }[];
}
const servedAs = async (client: Client, collection: string): Promise<Served> =>
  (await client.get('/api/_schema')).body.data.collections.find(({ name }: Served) => name === collection);

describeOnBoth(
  'a draft',
  (service) => {
    test('a json field, a list and a point are shown as JSON, and its text is stored as it was written', async () => {
      const { client } = await service.user();
      const items = await servedAs(client, 'items');
      const stored = { meta: { a: [1, 'b'] }, labels: ['a,b', 'c'], spot: { lat: 1, lng: 2 } };
      const { id } = (await client.post('/api/items', { data: { title: 'Valued', ...stored } })).body.data;
      const shown = async (): Promise<object> => {
        const record = (await client.get(`/api/items/${id}`)).body.data;
        const members = items.fields.filter(({ name }) => Object.hasOwn(stored, name));
        return Object.fromEntries(members.map((field) => [field.name, controlTextOf(field, record[field.name])]));
      };
      const texts = { meta: '{"a":[1,"b"]}', labels: '["a,b","c"]', spot: '{"lat":1,"lng":2}' };
      expect(await shown()).toEqual(texts);
      const draft = { meta: '"text"', labels: '["x"]', spot: '{"lat": 3, "lng": 4}' };
      expect((await client.patch(`/api/items/${id}`, { data: checkedData(items, draft) })).status).toBe(200);
      expect(await shown()).toEqual({ meta: '"text"', labels: '["x"]', spot: '{"lat":3,"lng":4}' });
      const emptied = { meta: 'null', labels: '[]', spot: '' };
      expect((await client.patch(`/api/items/${id}`, { data: checkedData(items, emptied) })).status).toBe(200);
      expect(await shown()).toEqual({ meta: null, labels: '[]', spot: null });
      // A json field would take the text as a string.
      const broken = { title: '{', meta: '{"a":2', labels: 'a' };
      expect(() => checkedData(items, broken)).toThrow(
        expect.objectContaining({ fields: { meta: JSON_EXPECTED, labels: JSON_EXPECTED } }),
      );
    });

    test('a new record has the id that its caller makes, and its references the ids of their type', async () => {
      const { client } = await service.user();
      const [days, customers] = [await servedAs(client, 'days'), await servedAs(client, 'customers')];
      const { id } = (await client.post('/api/orders', { data: { note: 'First' } })).body.data;
      const order = idOfText('int', String(id));
      const draft = { id: '17', order, orders: addLink(order) };
      expect(formData(days, draft)).toEqual({ id: 17 });
      const { status, body } = await client.post('/api/customers?expand=orders', { data: formData(customers, draft) });
      expect([status, body.data.id, body.data.order, body.data.expand.orders[0].id]).toEqual([201, '17', id, id]);
      expect((await client.post('/api/days', { data: formData(days, draft) })).body.data.id).toBe(17);
      // A stored record keeps its id.
      expect([newMembersOf(days), formMembersOf(days)].map((members) => members[0].name)).toEqual(['id', 'note']);
      expect(linkedIdsOf('orders', body.data, removeLink(order))).toEqual([]);
      const filter = termOf({ name: 'order', type: 'int' }, '=', String(id));
      expect((await client.post('/api/customers/query', { filter })).body.data).toHaveLength(1);
    });

    test('an edit of one link keeps the links that the record does not show, and so does its undo', async () => {
      const { client } = await service.user();
      const items = await servedAs(client, 'items');
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
