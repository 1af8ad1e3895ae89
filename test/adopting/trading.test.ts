// @module-tag long
/** A trading company, served by a draft: keys of letters, names with spaces, a tree of employees, views. */
import { beforeAll, describe, expect, inject, test } from 'vitest';
import type { User } from '../support/service.ts';
import { adopted } from './adopted-database.ts';

const ALL = { access: { view: true } };
const EDITS = {
  customers: { access: { view: true, create: [{ roles: ['admin'] }] } },
  employees: ALL,
  products: ALL,
  categories: ALL,
  order_details: { access: { view: '@record.order.customer.country = "DE"' } },
  orders: { access: { view: '@record.employee.reports_to.last_name = "Davolio"' } },
  order_totals: ALL,
  gift_notes: ALL,
  samples: {
    access: { view: true, create: [{ roles: ['admin'] }], update: '@record.weight = 0.1 and @record.code = "ab"' },
  },
  dutch_customers: ALL,
  price_notes: { access: { view: true, update: [{ roles: ['admin'] }] } },
};

describe.skipIf(inject('postgresUrl') === '')('a trading company', () => {
  const database = adopted('trading.sql', ['trading'], EDITS);
  const { service } = database;
  let ann: User;
  let root: User;
  beforeAll(async () => {
    [ann, root] = await Promise.all([service.user(), service.user('admin')]);
  });
  const ids = async (path: string) => (await ann.client.get(path)).body.data?.map(({ id }: { id: unknown }) => id);

  test('the draft names what it leaves out', () => {
    expect(database.counts).toBe('12 collections; left out: 1 table, 1 view, 1 column');
    const named = [
      'table trading.audit_lines: it has no primary key, and no unique column that is never null',
      'view trading.headcount: PostgreSQL knows no key of it',
      'column trading.orders.legacy: no field type holds money',
    ];
    expect(database.draft).toContain('references: sku }');
    expect(database.draft).toContain(
      'order_details: { kind: belongs_to, collection: order_details, fields: [ order_id, product_id ], on_delete: restrict }',
    );
    expect(database.draft).toContain('gift_notes: { kind: has_one, collection: gift_notes, via: order_details }');
    expect(database.draft).toContain('deliveries: { kind: has_many, collection: deliveries, via: order_details }');
    expect(named.filter((text) => !database.draft.includes(text))).toEqual([]);
  });

  test('keys of letters are read, filtered, related and given by callers', async () => {
    expect(await ids('/api/customers')).toEqual(['ALFKI', 'DUTCH']);
    expect((await ann.client.get('/api/customers/ALFKI')).body.data.company_name).toBe('Alfreds Futterkiste');
    expect(await ids('/api/dutch_customers')).toEqual(['DUTCH']);
    expect(await ids('/api/products?category=1')).toEqual([1]);
    const make = (data: object) => root.client.post('/api/customers', { data });
    expect((await make({ id: 'NEWCO', company_name: 'New' })).body.data).toMatchObject({
      id: 'NEWCO',
      company_name: 'New',
    });
    expect((await make({ id: 'NEWCO', company_name: 'Again' })).status).toBe(409);
    expect((await make({ company_name: 'Without' })).status).toBe(422);
    expect((await make({ id: 'TOOLONG', company_name: 'x' })).status).toBe(422);
  });

  test('records of a composite key are read, filtered and related, beside their owner', async () => {
    expect(database.draft).toContain('id: [ order, product ]');
    expect(await ids('/api/order_details')).toEqual(['10248~1', '10248~2']);
    const read = await ann.client.get('/api/order_details/10248~2?expand=order,product');
    expect(read.body.data).toMatchObject({ id: '10248~2', quantity: 10, order: 10248, product: 2, gift_notes: 1 });
    expect(read.body.data.expand.product).toMatchObject({ product_name: 'Konbu' });
    expect((await ann.client.get('/api/order_details/10249~1')).status).toBe(404);
    const order = await ann.client.get('/api/orders/10248?expand=order_details');
    expect(order.body.data.expand.order_details.map(({ id }: { id: string }) => id)).toEqual(['10248~1', '10248~2']);
    await database.own('UPDATE trading.order_details SET quantity = 11 WHERE order_id = 10248 AND product_id = 2');
    expect((await ann.client.get('/api/order_details?product=2')).body.data[0].quantity).toBe(11);
    await database.own('UPDATE trading.order_details SET quantity = 10 WHERE order_id = 10248 AND product_id = 2');
  });

  test('columns of other types are read and written as the values of fields', async () => {
    const list = async (filter: string) => {
      const { body, text } = await ann.client.post('/api/samples/query', { filter });
      return body.data?.map(({ id }: { id: number }) => id) ?? text;
    };
    const first = {
      id: 1,
      code: 'ab',
      weight: 0.1,
      measured: '2026-01-31T09:30:00.500000Z',
      exact: '12.345',
      raw: { b: 1, a: [true] },
      doc: {},
      names: ['x', 'y z'],
      short_names: null,
      marks: ['m'],
    };
    const read = await ann.client.get('/api/samples/1');
    expect(read.body.data, read.text).toEqual(first);
    for (const filter of [
      'code = "ab"',
      'code ends with "b"',
      'weight = 0.1',
      'measured = "2026-01-31T10:30:00.5+01:00"',
      'measured < "2026-01-31T09:30:01Z"',
      'exact = 12.345',
      'names contains "y z"',
      'any(marks as m, m = "m")',
      'count(marks) = 1 and marks contains "m"',
      'not (marks contains "n") and raw is not null',
    ])
      expect(await list(filter), filter).toEqual([1]);
    const sorted = await ann.client.post('/api/samples/query', { sort: ['-measured', 'weight', 'code'] });
    expect(sorted.body.data.map(({ id }: { id: number }) => id)).toEqual([1, 2]);
    const { id: _, ...values } = first;
    const made = await root.client.post('/api/samples', { data: values });
    expect([made.status, made.body.data], made.text).toMatchObject([201, values]);
    const patch = (data: object) => ann.client.patch(`/api/samples/${made.body.data.id}`, { data });
    expect((await patch({ measured: '2020-01-01T00:00:00+02:00', raw: [1], names: [] })).body.data).toMatchObject({
      measured: '2019-12-31T22:00:00.000000Z',
      raw: [1],
      names: [],
    });
    expect((await patch({ code: 'toolong' })).status).toBe(422);
    expect((await patch({ weight: 1e39 })).status).toBe(422);
    expect((await patch({ weight: 0.5 })).status).toBe(403);
    await database.own('DELETE FROM trading.samples WHERE sample_id > 2');
  });

  test('rules walk the tree of employees', async () => {
    expect(await ids('/api/orders')).toEqual([10248]);
    expect((await ann.client.get('/api/orders/10249')).status).toBe(404);
    await database.own('UPDATE trading.employees SET reports_to = 1 WHERE employee_id = 3');
    expect(await ids('/api/orders')).toEqual([10248, 10249]);
    const { body } = await ann.client.get('/api/employees/2?expand=reports_to');
    expect(body.data.expand.reports_to).toMatchObject({ id: 1, last_name: 'Davolio', birth_date: '1968-12-08' });
  });

  test('views count, and names with spaces stay in the database', async () => {
    expect((await ann.client.get('/api/order_totals/10248')).body.data.pieces).toBe(22);
    const changed = await root.client.patch('/api/price_notes/7', { data: { Unit: 'crate' } });
    expect([changed.status, changed.body.data]).toMatchObject([200, { id: 7, Unit: 'crate', product: 1 }]);
    expect(await database.own(`SELECT "Unit" FROM trading."Price Notes"`)).toEqual([{ Unit: 'crate' }]);
  });

  test('nothing of the owner has been altered', () => database.expectUnaltered());
});
