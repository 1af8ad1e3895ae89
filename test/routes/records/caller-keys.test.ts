/** Ids that callers give: strings that addresses and SQL trip over, and numbers; read, referenced, filtered, sorted and batched. */
import { beforeAll, expect, test } from 'vitest';
import { describeOnBoth, type User } from '../../support/service.ts';

/** In the order of their code points. */
const CODES = ['%2F', '...', '?x=1&y', 'A B', "O'Neil", 'a/b', 'a~b', 'null', 'é', '\u{1F600}'];

const SCHEMA = `
roles: { admin: { assigns: [admin, member] }, member: {} }
register: { roles: [member] }
collections:
  shops:
    id: { type: string, column: code, made_by: caller }
    fields: { name: string, twin: string }
    relations:
      orders: { kind: has_many, collection: orders, via: shop }
      partners: { kind: many_to_many, collection: shops }
    access: { view: '@record.id != "secret"', create: '@record.id != "denied"', update: true, delete: '@record.id != @record.twin' }
  orders:
    id: { type: int, column: order_no, made_by: caller }
    fields: { number: int }
    relations: { shop: { kind: belongs_to, collection: shops, on_delete: cascade }, before: { kind: belongs_to, collection: orders } }
    access: { view: '@record.id = @record.number or @record.number is null', create: true, update: true, delete: true }
  steps:
    id: { type: int, made_by: caller }
    relations:
      above: { kind: belongs_to, collection: steps }
      below: { kind: has_many, collection: steps, via: above }
    access:
      view: true
      create: true
      delete: '@record.above.above is not null and any(@record.above.below as b, b.id = @record.id)'
  folders:
    id: { type: string, made_by: caller }
    history: true
    relations: { above: { kind: belongs_to, collection: folders } }
    access:
      view: 'any(ancestors(@record.above by above) as f, f.id = "top") or @record.above is null'
      create: true
      delete: 'any(ancestors(@record.above by above) as f, f.id = "top")'
`;

describeOnBoth(
  'ids of callers',
  (service) => {
    let ann: User;
    const at = (path: string, id: string | number): string => `/api/${path}/${encodeURIComponent(id)}`;
    const idsOf = ({ body, text }: { body: { data?: { id: unknown }[] }; text: string }) =>
      body.data?.map(({ id }) => id) ?? text;

    beforeAll(async () => {
      ann = await service.user();
      for (const id of CODES.toReversed()) {
        const { status, headers, body, text } = await ann.client.post('/api/shops', { data: { id, name: id } });
        expect([status, body.data?.id, headers.get('location')], text).toEqual([201, id, at('shops', id)]);
      }
    });

    test('a string is an id in addresses, lists, filters, policies and bodies', async () => {
      for (const id of CODES) {
        const path = at('shops', id);
        expect((await ann.client.get(path)).body?.data?.name, path).toBe(id);
        expect((await ann.client.patch(path, { data: { twin: 'x' } })).body.data.id).toBe(id);
        expect(idsOf(await ann.client.get(`/api/shops?id=${encodeURIComponent(id)}`))).toEqual([id]);
        expect(idsOf(await ann.client.post('/api/shops/query', { filter: 'id = $x', params: { x: id } }))).toEqual([
          id,
        ]);
        expect(
          idsOf(await ann.client.post('/api/shops/query', { filter: `name = id and id in [${JSON.stringify(id)}]` })),
        ).toEqual([id]);
      }
      expect(idsOf(await ann.client.get('/api/shops'))).toEqual(CODES);
      const back: unknown[] = [];
      for (let cursor: string | undefined, more = true; more; ) {
        const { body } = await ann.client.post('/api/shops/query', {
          sort: ['-id'],
          limit: 3,
          ...(cursor && { cursor }),
        });
        back.push(...body.data.map(({ id }: { id: unknown }) => id));
        cursor = body.page.next_cursor ?? undefined;
        more = cursor !== undefined;
      }
      expect(back).toEqual(CODES.toReversed());
    });

    test('an id is given once, has its type and never changes', async () => {
      const errorOf = async (path: string, data: object) => {
        const { status, body } = await ann.client.post(path, { data });
        return [status, body.errors?.[0]?.pointer, body.errors?.[0]?.code];
      };
      expect(await errorOf('/api/shops', { id: 'a/b' })).toEqual([409, '/data/id', 'unique_violation']);
      expect(await errorOf('/api/shops', {})).toEqual([422, '/data/id', 'required']);
      for (const id of [null, '', '.', '..', 5, 'a\0', ['x']])
        expect((await errorOf('/api/shops', { id })).slice(0, 2), JSON.stringify(id)).toEqual([422, '/data/id']);
      for (const id of [1.5, '1', 2 ** 53, true])
        expect(await errorOf('/api/orders', { id }), JSON.stringify(id)).toEqual([422, '/data/id', 'wrong_type']);
      expect((await ann.client.post('/api/shops', { data: { id: 'denied' } })).status).toBe(403);
      const changed = await ann.client.patch(at('shops', 'a/b'), { data: { id: 'c' } });
      expect([changed.body.errors[0].code, changed.body.errors[0].detail]).toEqual([
        'read_only',
        '`id` is set on create and never changes',
      ]);
      expect((await ann.client.post('/api/shops', { data: { id: 'secret' } })).body).toEqual({
        data: { id: 'secret' },
      });
      expect((await ann.client.get(at('shops', 'secret'))).status).toBe(404);
      await ann.client.delete(at('shops', 'secret'));
    });

    test('bytes of an address that are not UTF-8 are no id, not the text of their encoding', async () => {
      for (const id of ['%ff', 'a%E2%82']) {
        expect((await ann.client.post('/api/shops', { data: { id, twin: 'x' } })).status).toBe(201);
        const path = `/api/shops/${id}`;
        const answers = [ann.client.get(path), ann.client.patch(path, { data: {} }), ann.client.delete(path)];
        for (const { status, body } of await Promise.all(answers))
          expect([status, body.code], path).toEqual([404, 'not_found']);
        expect((await ann.client.delete(at('shops', id))).status).toBe(204);
      }
    });

    test('a number is an id, and text that is not one identifies nothing', async () => {
      for (const id of [7, -3, 0, 9007199254740991]) {
        const { status, body, text } = await ann.client.post('/api/orders', { data: { id, number: id, shop: 'a/b' } });
        expect([status, body.data?.id, body.data?.shop], text).toEqual([201, id, 'a/b']);
      }
      await ann.client.post('/api/orders', { data: { id: 8, number: 9 } });
      expect(idsOf(await ann.client.get('/api/orders'))).toEqual([-3, 0, 7, 9007199254740991]);
      for (const text of ['8', '07', '7.0', '1e3', 'x', '9007199254740993', '7~1'])
        expect((await ann.client.get(at('orders', text))).status, text).toBe(404);
      expect((await ann.client.get('/api/orders?shop=a%2Fb&before_id=x')).body.errors[0].code).toBe(
        'filter_invalid_value',
      );
      expect(idsOf(await ann.client.post('/api/orders/query', { filter: 'id > 3' }))).toContain('type_unordered');
      expect(
        idsOf(await ann.client.post('/api/orders/query', { filter: 'id in [7, 7.5, -3] and number = id' })),
      ).toEqual([-3, 7]);
      const { body } = await ann.client.get(`${at('shops', 'a/b')}?expand=orders`);
      expect(body.data.expand.orders.map(({ id }: { id: unknown }) => id)).toEqual([-3, 0, 7, 9007199254740991]);
      expect(idsOf(await ann.client.get('/api/shops?orders_any=7'))).toEqual(['a/b']);
    });

    test('a batch refers to ids that its creates give, each of its collection', async () => {
      const batch = (...operations: object[]) => ann.client.post('/api/batch', { operations });
      const create = (collection: string, as: string, data: object) => ({ op: 'create', collection, as, data });
      const made = await batch(
        create('shops', 's', { id: 'new', partners: { set: ['a/b', 'A B'] } }),
        create('orders', 'o', { id: 100, shop: { $ref: 's' } }),
        create('orders', 'p', { id: 101, before: { $ref: 'o' } }),
        { op: 'update', collection: 'orders', id: { $ref: 'o' }, data: { number: 100 } },
        { op: 'delete', collection: 'orders', id: 101 },
      );
      expect(
        made.body.data?.map(({ status }: { status: number }) => status),
        made.text,
      ).toEqual([201, 201, 201, 200, 204]);
      const mixed = await batch(
        create('shops', 's', { id: 'other' }),
        create('orders', 'o', { id: 102, before: { $ref: 's' } }),
      );
      expect([mixed.status, mixed.body.errors[0].code]).toEqual([422, 'unknown_ref']);
      expect((await batch({ op: 'delete', collection: 'orders', id: '100' })).status).toBe(422);
    });

    test('an explanation and a history follow a chain of strings', async () => {
      const root = await service.user('admin');
      for (const [id, above] of [
        ['top', null],
        ['mid', 'top'],
        ['low', 'mid'],
      ])
        expect((await root.client.post('/api/folders', { data: { id, above } })).status).toBe(201);
      const ofTop = { collection: 'folders', action: 'delete', as: root.id };
      const answers = await Promise.all(
        ['low', 'top'].map((id) => root.client.post('/api/_explain', { ...ofTop, id })),
      );
      expect(answers.map(({ status, body }) => [status, body.data?.allowed])).toEqual([
        [200, true],
        [200, false],
      ]);
      const { status, body, text } = await root.client.get('/api/folders/low/history');
      expect([status, body.data?.map(({ action }: { action: string }) => action)], text).toEqual([200, ['create']]);
    });

    test('an explanation finds the related records of numbers', async () => {
      const root = await service.user('admin');
      const explained: unknown[] = [];
      for (const [id, above] of [
        [1, null],
        [2, 1],
        [3, 2],
      ]) {
        await root.client.post('/api/steps', { data: { id, above } });
        const { body, text } = await root.client.post('/api/_explain', {
          collection: 'steps',
          action: 'delete',
          id,
          as: root.id,
        });
        explained.push(body.data?.allowed ?? text);
      }
      expect(explained).toEqual([false, false, true]);
    });

    test('an answer that is kept under a key goes with its record', async () => {
      const key = { 'Idempotency-Key': 'k' };
      const ask = () => ann.client.post('/api/orders', { data: { id: 500, shop: 'null' } }, key);
      const first = await ask();
      expect(first.status).toBe(201);
      expect((await ask()).body).toEqual(first.body);
      expect((await ann.client.delete(at('orders', 500))).status).toBe(204);
      expect((await ask()).body).toEqual({ data: { id: 500 } });
      await ann.client.post('/api/orders', { data: { id: 501, shop: 'null' } });
      expect((await ann.client.delete(at('shops', 'null'))).status).toBe(204);
      expect((await ann.client.get(at('orders', 501))).status).toBe(404);
    });
  },
  { schema: SCHEMA },
);
