/** Tables of other programs whose keys are `character`, which PostgreSQL fills up with spaces; and errors that their constraints make. */
import { afterAll, describe, expect, it } from 'vitest';
import { exportRecords } from '../../../src/records/transfer/export-records.ts';
import { idsOf, outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';
import { ownersWorld, ownSchema } from './owners-table.ts';

describe('keys with spaces at their end', () => {
  const shop = ownSchema();
  const world = ownersWorld(
    `
CREATE SCHEMA ${shop};;
CREATE TABLE ${shop}.customers (code char(5) PRIMARY KEY, name text, tax_no varchar(9) UNIQUE);;
CREATE TABLE ${shop}.orders (
  order_no int PRIMARY KEY, cust char(5) REFERENCES ${shop}.customers, tax varchar(9) REFERENCES ${shop}.customers (tax_no),
  first_day date, last_day date, CHECK (NOT isempty(daterange(first_day, last_day))));;
INSERT INTO ${shop}.customers VALUES ('ACME', 'Acme', 'T1'), ('BOLT', 'Bolt', NULL), ('EXACT', 'Exact', NULL);;
INSERT INTO ${shop}.orders VALUES (1, 'ACME', 'T1', '2026-01-01', '2026-01-05'), (2, 'EXACT', NULL, NULL, NULL), (3, NULL, NULL, NULL, NULL);;
CREATE VIEW ${shop}.exact AS SELECT order_no, cust FROM ${shop}.orders WHERE cust = 'EXACT';;
`,
    `
roles: [member]
register: { roles: [member] }
collections:
  customers:
    table: ${shop}.customers
    managed: false
    timestamps: none
    id: { type: string, column: code }
    fields: { name: string, tax_no: { type: string, unique: true } }
    relations: { orders: { kind: has_many, collection: orders, via: cust } }
    access: { view: true, create: true, update: true, delete: true }
  orders:
    table: ${shop}.orders
    managed: false
    timestamps: none
    id: { type: int, column: order_no, made_by: caller }
    fields: { first_day: date, last_day: date }
    relations:
      cust: { kind: belongs_to, collection: customers, column: cust }
      tax: { kind: belongs_to, collection: customers, column: tax, references: tax_no }
    access: { view: '@record.cust != "BOLT" or @record.cust is null', create: true, update: '@next.cust != "BOLT"', delete: true }
  exact: { table: ${shop}.exact, managed: false, timestamps: none, id: { type: int, column: order_no }, access: { view: true, create: true } }
  notes: { relations: { customer: { kind: belongs_to, collection: customers } }, access: { view: true, create: true } }
`,
  );

  describeOnBoth(
    'served without them',
    (service) => {
      afterAll(() => world.run(`DROP SCHEMA IF EXISTS ${shop} CASCADE`).catch(() => undefined));

      it('an id is the same in lists, references, addresses and filters', async () => {
        const { client } = await service.user();
        expect(idsOf((await client.get('/api/customers')).body.data)).toEqual(['ACME', 'BOLT', 'EXACT']);
        const { body } = await client.get('/api/orders?expand=cust,tax');
        expect(body.data).toMatchObject([
          { id: 1, cust: 'ACME', tax: 'ACME', expand: { cust: { name: 'Acme' }, tax: { id: 'ACME' } } },
          { id: 2, cust: 'EXACT', expand: { cust: { id: 'EXACT' } } },
          { id: 3, cust: null },
        ]);
        const read = await client.get('/api/customers/ACME?expand=orders');
        expect([read.body.data.id, idsOf(read.body.data.expand.orders)]).toEqual(['ACME', [1]]);
        expect((await client.get('/api/customers/ACME%20')).status).toBe(404);
        expect(idsOf((await client.get('/api/orders?cust=ACME')).body.data)).toEqual([1]);
        const paged = await client.post('/api/customers/query', { sort: ['-id'], limit: 2 });
        expect(idsOf(paged.body.data)).toEqual(['EXACT', 'BOLT']);
        const rest = await client.post('/api/customers/query', {
          sort: ['-id'],
          limit: 2,
          cursor: paged.body.page.next_cursor,
        });
        expect(idsOf(rest.body.data)).toEqual(['ACME']);
        const groups = await client.post('/api/orders/aggregate', { group_by: ['cust'], measures: { n: 'count' } });
        expect(groups.body.data).toContainEqual({ cust: 'ACME', n: 1 });
      });

      it('writes take and return it, and rules compare it', async () => {
        const { client } = await service.user();
        const made = await client.post('/api/customers', { data: { id: 'NEW', name: 'New' } });
        expect([made.status, made.body.data, made.headers.get('location')]).toEqual([
          201,
          { id: 'NEW', name: 'New', tax_no: null },
          '/api/customers/NEW',
        ]);
        expect(outcomeOf(await client.post('/api/customers', { data: { id: 'NEW' } }))).toEqual([
          409,
          'unique_violation',
          '/data/id unique_violation',
        ]);
        expect((await client.post('/api/orders', { data: { id: 9, cust: 'NEW' } })).body.data.cust).toBe('NEW');
        expect((await client.patch('/api/orders/9', { data: { cust: 'BOLT' } })).status).toBe(403);
        expect((await client.patch('/api/orders/9', { data: { cust: 'ACME' } })).body.data.cust).toBe('ACME');
        expect((await client.delete('/api/orders/9')).status).toBe(204);
        expect((await client.patch('/api/customers/NEW', { data: { name: 'Newer' } })).body.data.id).toBe('NEW');
        expect((await client.post('/api/notes', { data: { customer: 'NEW' } })).body.data.customer).toBe('NEW');
        expect((await client.get('/api/notes?expand=customer')).body.data[0].expand.customer.name).toBe('Newer');
      });

      it('an export has it', async () => {
        const { schema } = service.app;
        const lines: unknown[] = [];
        for await (const line of exportRecords({ q: world.db(), schema }, schema.collections.get('orders')!))
          lines.push(JSON.parse(line).cust);
        expect(lines).toEqual(['ACME', 'EXACT', null]);
      });

      it('errors of constraints are those of the request', async () => {
        const { client } = await service.user();
        const patched = async (path: string, data: object) => outcomeOf(await client.patch(`/api/${path}`, { data }));
        expect(await patched('orders/1', { first_day: '2026-02-01' })).toEqual([
          422,
          'validation_failed',
          '/data unstorable',
        ]);
        const { body } = await client.patch('/api/orders/1', { data: { first_day: '2026-02-01' } });
        expect(body.errors[0].detail).toBe('a value does not fit the columns or constraints of the database');
        expect(await patched('customers/ACME', { tax_no: 'T2' })).toEqual([409, 'conflict', '/data/tax_no conflict']);
        const created = await client.post('/api/exact', { data: {} });
        expect([created.status, created.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      });
    },
    world.options,
  );
});
