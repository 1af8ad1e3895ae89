/** References by another unique field than the id (`references`), in the service's own tables. */
import { beforeAll, expect, test } from 'vitest';
import { exportRecords } from '../../../src/records/transfer/export-records.ts';
import { raw } from '../../../src/sql.ts';
import { idsOf, outcomeOf } from '../../support/records.ts';
import { describeOnBoth, type User } from '../../support/service.ts';

const ALL = 'create: true, update: true, delete: true';
const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  customers:
    fields:
      code: { type: string, required: true, unique: true, max: 20, access: { read: '@record.open = true' } }
      no: { type: int, required: true, unique: true }
      open: { type: bool, required: true, default: true }
    relations: { orders: { kind: has_many, collection: orders, via: customer } }
    soft_delete: true
    access: { view: '@record.open = true', restore: true, ${ALL} }
  orders:
    fields:
      number: { type: int, required: true, unique: true }
      title: { type: string, search: true }
    relations:
      customer: { kind: belongs_to, collection: customers, column: cust, references: code }
      payer: { kind: belongs_to, collection: customers, references: no, on_delete: restrict }
      before: { kind: belongs_to, collection: orders, references: number, unique: true, on_delete: cascade }
      after: { kind: has_one, collection: orders, via: before }
      buyer: { kind: belongs_to, collection: users, references: email, default: '@request.auth.id' }
      tags: { kind: many_to_many, collection: tags }
    access: { view: '@record.buyer = @request.auth.id or @record.customer.no < 5', create: true, update: '@next.customer.no != 9', delete: true }
    checks: { open: { when: '@next.customer.open = true', message: closed, fields: [customer] } }
  tags: { access: { view: true, ${ALL} } }
  lines:
    fields: { text: string }
    relations: { order: { kind: belongs_to, collection: orders, references: number, required: true, on_delete: cascade } }
    access: { view: '@record.order.customer.no < 3', ${ALL} }
`;

describeOnBoth(
  'references by another unique field',
  (service) => {
    let ann: User;
    const ids: Record<string, string> = {};
    const made = async (collection: string, data: object): Promise<string> => {
      const { status, body, text } = await ann.client.post(`/api/${collection}`, { data });
      expect(status, text).toBe(201);
      return body.data.id;
    };
    const stored = async (number: number) => {
      const { db } = service.app;
      return [
        ...(await db.rows(raw(`SELECT cust, payer_id, before_id, buyer_id FROM orders WHERE number = ${number}`)))[0]!,
      ];
    };

    beforeAll(async () => {
      ann = await service.user();
      for (const [code, no, open] of [
        ['ACME', 1, true],
        ['BOLT', 7, true],
        ['HUSH', 3, false],
      ] as const)
        ids[code] = await made('customers', { code, no, open });
      ids.tag = await made('tags', {});
      ids.one = await made('orders', {
        number: 1,
        title: 'Über',
        customer: ids.ACME,
        payer: ids.BOLT,
        tags: { set: [ids.tag] },
      });
      ids.two = await made('orders', { number: 2, customer: ids.BOLT, before: ids.one });
    });

    test('a column has the value, and answers have the id', async () => {
      expect(await stored(1)).toEqual(['ACME', '7', null, ann.email]);
      expect(await stored(2)).toEqual(['BOLT', null, '1', ann.email]);
      const { body } = await ann.client.get(`/api/orders/${ids.one}?expand=customer,payer,after,tags,buyer`);
      expect(body.data).toMatchObject({
        customer: ids.ACME,
        payer: ids.BOLT,
        before: null,
        after: ids.two,
        buyer: ann.id,
      });
      const { customer, payer, after, tags } = body.data.expand;
      expect([customer.no, payer.no, after.number, tags.length]).toEqual([1, 7, 2, 1]);
      expect(idsOf((await ann.client.get(`/api/customers/${ids.ACME}?expand=orders`)).body.data.expand.orders)).toEqual(
        [ids.one],
      );
    });

    test('filters, sorts, groups and search follow it', async () => {
      const asked = async (body: object) => idsOf((await ann.client.post('/api/orders/query', body)).body.data);
      expect(await asked({ filter: 'customer.code = "ACME" and title matches "uber"' })).toEqual([ids.one]);
      expect(await asked({ filter: 'customer = $c', params: { c: ids.BOLT } })).toEqual([ids.two]);
      expect(await asked({ sort: ['-customer.no'] })).toEqual([ids.two, ids.one]);
      expect(
        await asked({ filter: 'any(ancestors(before by before) as a, a.id = $o)', params: { o: ids.one } }),
      ).toEqual([ids.two]);
      expect(idsOf((await ann.client.get(`/api/orders?payer=${ids.BOLT}`)).body.data)).toEqual([ids.one]);
      expect(idsOf((await ann.client.get(`/api/customers?orders_any=${ids.two}`)).body.data)).toEqual([ids.BOLT]);
      const { body } = await ann.client.post('/api/orders/aggregate', {
        group_by: ['customer'],
        measures: { n: 'count' },
      });
      expect(body.data).toHaveLength(2);
    });

    test('a write takes an id that its caller may read, and rules and checks see the record', async () => {
      const patch = async (data: object) => outcomeOf(await ann.client.patch(`/api/orders/${ids.two}`, { data }));
      expect(await patch({ customer: ids.HUSH })).toEqual([422, 'validation_failed', '/data/customer not_found']);
      expect(await patch({ customer: 'ACME' })).toEqual([422, 'validation_failed', '/data/customer wrong_type']);
      const nine = await made('customers', { code: 'NINE', no: 9 });
      expect(await patch({ customer: nine })).toEqual([403, 'forbidden']);
      const { headers } = await ann.client.get(`/api/orders/${ids.two}`);
      const tagged = { 'If-Match': headers.get('etag')! };
      const first = await ann.client.patch(`/api/orders/${ids.two}`, { data: { customer: ids.ACME } }, tagged);
      expect([first.status, first.body.data.customer]).toEqual([200, ids.ACME]);
      const second = await ann.client.patch(`/api/orders/${ids.two}`, { data: { customer: ids.BOLT } }, tagged);
      expect(second.status).toBe(412);
      const put = await ann.client.put('/api/orders/by/number/2', { data: { customer: ids.BOLT } });
      expect([put.status, await stored(2)]).toEqual([200, ['BOLT', null, '1', ann.email]]);
      expect(outcomeOf(await ann.client.post('/api/orders', { data: { number: 3, before: ids.one } }))).toEqual([
        409,
        'unique_violation',
        '/data/before unique_violation',
      ]);
      const bulk = await ann.client.post('/api/orders/update', { filter: 'number = 2', data: { payer: ids.ACME } });
      expect([bulk.status, (await stored(2))[1]]).toEqual([200, '1']);
      await ann.client.patch(`/api/orders/${ids.two}`, { data: { payer: null } });
    });

    test('a batch refers to what it makes', async () => {
      const operations = [
        { op: 'create', collection: 'customers', as: 'c', data: { code: 'NEW', no: 2 } },
        { op: 'create', collection: 'orders', as: 'o', data: { number: 20, customer: { $ref: 'c' } } },
        { op: 'create', collection: 'lines', data: { text: 'x', order: { $ref: 'o' } } },
      ];
      const { status, text } = await ann.client.post('/api/batch', { operations });
      expect(status, text).toBe(200);
      expect((await stored(20))[0]).toBe('NEW');
      expect((await ann.client.get('/api/lines')).body.data).toHaveLength(1);
    });

    test('a column follows the value, and the reference stays', async () => {
      const { headers } = await ann.client.get(`/api/orders/${ids.one}`);
      expect((await ann.client.patch(`/api/customers/${ids.ACME}`, { data: { code: 'ACME2' } })).status).toBe(200);
      expect((await stored(1))[0]).toBe('ACME2');
      const { body, headers: later } = await ann.client.get(`/api/orders/${ids.one}`);
      expect([body.data.customer, later.get('etag')]).toEqual([ids.ACME, headers.get('etag')]);
    });

    test('an export has ids', async () => {
      const { schema, db } = service.app;
      const lines: unknown[] = [];
      for await (const line of exportRecords({ q: db, schema }, schema.collections.get('orders')!))
        lines.push(JSON.parse(line));
      expect(lines).toContainEqual(expect.objectContaining({ number: 1, customer: ids.ACME, buyer: ann.id }));
    });

    test('deletes of the other record follow `on_delete`', async () => {
      const remove = async (path: string) => outcomeOf(await ann.client.delete(path));
      expect(await remove(`/api/customers/${ids.BOLT}`)).toEqual([409, 'still_referenced']);
      expect(await remove(`/api/customers/${ids.ACME}`)).toEqual([204, undefined]);
      expect((await stored(1))[0]).toBeNull();
      expect((await ann.client.post(`/api/customers/${ids.ACME}/restore`)).status).toBe(200);
      expect(await remove(`/api/orders/${ids.one}`)).toEqual([204, undefined]);
      expect((await ann.client.get(`/api/orders/${ids.two}`)).status).toBe(404);
    });
  },
  { schema: SCHEMA },
);
