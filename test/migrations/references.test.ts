/** Foreign keys to another unique column than that of the ids: made, followed through new names, and taken over from another program. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { raw } from '../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../support/store-world.ts';

const shop = (code: string, customer: string): string => `
collections:
  orders: { relations: { customer: { kind: belongs_to, collection: customers, column: cust, ${customer} } } }
  customers: { fields: { name: string, ${code} } }
`;
const CODE = 'code: { type: string, required: true, unique: true, max: 20 }';
const BY_CODE = schemaOf(shop(CODE, 'references: code, on_delete: cascade'));

describe.each(KINDS)('references by another column on %s', (kind) => {
  let db: Database;
  const keys = async () => {
    const rows = await db.rows(
      raw(`SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'orders'::regclass AND contype = 'f'`),
    );
    return rows.map(([text]) => text);
  };
  const statements = async (schema: Parameters<typeof planMigration>[1]) =>
    (await planMigration(db, schema, { largeFrom: 0 })).statements;

  beforeAll(async () => {
    db = await openKind(kind);
    // Another program has made the tables, with a key that follows updates and no index for it.
    await db.run(
      raw(`CREATE TABLE customers (id uuid PRIMARY KEY, name text COLLATE "C", code text COLLATE "C" NOT NULL)`),
    );
    await db.run(raw(`CREATE TABLE orders (id uuid PRIMARY KEY, cust text COLLATE "C")`));
    await db.run(raw(`INSERT INTO customers VALUES (gen_random_uuid(), 'Acme', 'ACME')`));
    await db.run(raw(`INSERT INTO orders VALUES (gen_random_uuid(), 'ACME'), (gen_random_uuid(), NULL)`));
  });
  afterAll(() => db?.close());

  it('a key follows the unique values that the same migration makes, also of tables in use', async () => {
    await applyMigration(db, BY_CODE, { largeFrom: 0 });
    expect(await keys()).toEqual(['FOREIGN KEY (cust) REFERENCES customers(code) ON UPDATE CASCADE ON DELETE CASCADE']);
    expect(await statements(BY_CODE)).toEqual([]);
    await db.run(raw(`UPDATE customers SET code = 'NEW'`));
    expect((await db.rows(raw('SELECT cust FROM orders WHERE cust IS NOT NULL')))[0]).toEqual(['NEW']);
  });

  it('a new name of the other column changes nothing else', async () => {
    const renamed = schemaOf(shop(CODE.replace('code: {', 'key: { was: code,'), 'references: key, on_delete: cascade'));
    const planned = await statements(renamed);
    expect(planned.filter((text) => text.includes('orders'))).toEqual([]);
    await applyMigration(db, renamed);
    expect(await statements(renamed)).toEqual([]);
    await applyMigration(
      db,
      schemaOf(shop(CODE.replace('code: {', 'code: { was: key,'), 'references: code, on_delete: cascade')),
    );
    expect(await statements(BY_CODE)).toEqual([]);
  });

  it('values without a record end the migration with the rows', async () => {
    await db.run(raw('ALTER TABLE orders DROP CONSTRAINT orders_cust_fkey'));
    await db.run(raw(`INSERT INTO orders VALUES (gen_random_uuid(), 'LOST')`));
    const { destructive } = await planMigration(db, BY_CODE);
    expect(destructive.map(({ why }) => why)).toEqual([
      expect.stringMatching(
        /^"orders"\."cust" would reference "customers", but already holds ids of other records; SELECT /,
      ),
    ]);
    await db.run(raw(`DELETE FROM orders WHERE cust = 'LOST'`));
    await applyMigration(db, BY_CODE);
  });

  it('a reference by another column of the same type gets another key', async () => {
    const both = `${CODE}, mark: { type: string, required: true, unique: true, max: 20, default: NEW }`;
    const byMark = schemaOf(shop(both, 'references: mark, on_delete: cascade'));
    await applyMigration(db, byMark);
    expect(await keys()).toEqual(['FOREIGN KEY (cust) REFERENCES customers(mark) ON UPDATE CASCADE ON DELETE CASCADE']);
    expect(await statements(byMark)).toEqual([]);
    await db.run(raw(`INSERT INTO customers (id, name, code, mark) VALUES (gen_random_uuid(), 'Bolt', 'BOLT', 'B')`));
    await db.run(raw(`INSERT INTO orders (id, cust) VALUES (gen_random_uuid(), 'B')`));
    const { destructive } = await planMigration(db, schemaOf(shop(both, 'references: code, on_delete: cascade')));
    expect(destructive.map(({ why }) => why)).toEqual([expect.stringContaining('already holds ids of other records')]);
  });
});
