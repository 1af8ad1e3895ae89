/** Tables of another PostgreSQL schema: one name in statements, the catalogue, migrations, constraint errors and statistics. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { retypedAsText } from '../../src/migrations/adopt/draft-table.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { BackgroundStatistics } from '../../src/records/page/table-statistics.ts';
import { storedTables } from '../../src/schema/model/stored-names.ts';
import { raw } from '../../src/sql.ts';
import { type Caller, ONE_KIND, openKind, refusal, schemaOf, World } from '../support/store-world.ts';

const ACCESS = 'access: { list: true, read: true, create: true, update: true, delete: true }';
const schemaText = (orderFields: string): string => `
roles: [member]
register: { roles: [member] }
collections:
  users: { access: { read: true } }
  customers: { table: Shop.customers, fields: { code: { type: string, unique: true } }, ${ACCESS} }
  orders:
    table: Shop.orders
    fields: { ${orderFields} }
    relations:
      customer: { kind: belongs_to, collection: customers, on_delete: cascade }
      buyer: { kind: belongs_to, collection: users }
      related: { kind: many_to_many, collection: orders }
      notes: { kind: has_many, collection: notes, via: order }
    access:
      list: '@record.label = "x" or any(@record.notes as n, n.text = "seen")'
      read: true
      create: true
      update: true
      delete: true
  notes:
    fields: { text: string }
    relations: { order: { kind: belongs_to, collection: orders, on_delete: cascade } }
    ${ACCESS}
`;
const FIRST = 'total: { type: int, index: true }, label: { type: string, unique: true, max: 40 }';
const LATER =
  'sum: { type: int, was: total }, label: { type: string, max: 40, search: true }, more: { type: int, unique: true }';

describe.each(ONE_KIND)('tables of another schema on %s', (kind) => {
  let db: Database;
  let ann: Caller;
  beforeAll(async () => {
    db = await openKind(kind);
    // A table of the same name in the current schema is another table.
    await db.run(raw('CREATE TABLE orders (id int)'));
    const world = await World.open(db, schemaText(FIRST));
    ann = await world.user('ann@example.org');
  });
  afterAll(() => db?.close());

  const namesOf = async (catalogue: string): Promise<readonly unknown[]> =>
    (await db.rows(raw(catalogue))).map(([name]) => name);

  it('writes and reads rows of the tables that the schema names', async () => {
    const { id: customer } = await ann.create('customers', { code: 'a' });
    const { id } = await ann.create('orders', { total: 3, label: 'x', customer, buyer: ann.id });
    const other = await ann.create('orders', { total: 0, label: 'y', related: { add: [id] } });
    await ann.create('notes', { order: other.id, text: 'seen' });
    expect(await ann.read('orders', id, ['customer'])).toMatchObject({ total: 3, expand: { customer: { code: 'a' } } });
    expect((await ann.list('orders')).data).toMatchObject([{ id }, { id: other.id }]);
    expect(await ann.update('orders', id, { total: 4 })).toMatchObject({ total: 4 });
    expect(await namesOf(`SELECT label FROM "Shop".orders ORDER BY label`)).toEqual(['x', 'y']);
    await ann.remove('customers', customer);
    expect(await namesOf(`SELECT label FROM "Shop".orders`)).toEqual(['y']);
  });

  it('reports a constraint error for its field', async () => {
    expect(await refusal(ann.create('orders', { label: 'y' }))).toEqual({
      unique_violation: ['/data/label unique_violation'],
    });
  });

  it('changes the tables, and finds nothing more to do', async () => {
    const [first, later] = [schemaOf(schemaText(FIRST)), schemaOf(schemaText(LATER))];
    expect((await planMigration(db, first)).statements).toEqual([]);
    await applyMigration(db, later, { allowDestructive: true });
    expect((await planMigration(db, later)).statements).toEqual([]);
    const constraints = `SELECT conname FROM pg_constraint WHERE conrelid = '"Shop".orders'::regclass AND contype <> 'n' ORDER BY conname`;
    expect(await namesOf(constraints)).toEqual([
      'orders_buyer_id_fkey',
      'orders_customer_id_fkey',
      'orders_more_key',
      'orders_pkey',
    ]);
    expect(await namesOf(`SELECT sum FROM "Shop".orders`)).toEqual(['0']);
    await applyMigration(db, first, { allowDestructive: true });
    expect((await planMigration(db, first)).statements).toEqual([]);
  });

  it('a schema that no longer has the collection leaves a table of another schema in place', async () => {
    const { statements, destructive } = await planMigration(db, schemaOf('roles: [member]'));
    expect(statements.filter((statement) => statement.includes('Shop'))).toEqual([]);
    expect(destructive.map(({ why }) => why)).toEqual([
      'the schema no longer has the table "notes"; its rows would be lost',
      'the schema no longer has the table "orders__related"; its rows would be lost',
    ]);
  });

  it('reads the statistics of the tables', async () => {
    await db.run(raw('ANALYZE "Shop".orders'));
    const statistics = new BackgroundStatistics(db, [...storedTables(schemaOf(schemaText(FIRST)))]);
    await statistics.refresh();
    expect(statistics.of('Shop.orders')?.rows).toBe(1);
  });
});

describe('the name of a table', () => {
  it('has its schema in a statement that a draft proposes', () => {
    const alter = 'ALTER TABLE "Shop"."orders" ALTER COLUMN "label"';
    expect(retypedAsText('Shop.orders', 'label')).toBe(`${alter} TYPE text COLLATE "C" USING "label"::text`);
  });

  it.each([
    ['a.b.c', 'expected the name of a table, or `schema.table`'],
    ['shop.', 'expected the name of a table, of 1 to 63 bytes'],
    ['.orders', 'expected the name of a table, of 1 to 63 bytes'],
    ['shop._orders', 'names that begin with `_` or `bylaw_` belong to the service'],
  ])('%j is an error', (table, message) => {
    expect(() => schemaOf(`collections: { orders: { table: ${table} } }`)).toThrow(message);
  });

  it('a distributed collection has none of another schema', () => {
    const text = 'collections: { teams: { table: shop.teams, distribute: reference } }';
    expect(() => schemaOf(text)).toThrow('has its table in the current schema');
  });
});
