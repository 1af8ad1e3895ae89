/** Tables whose ids are ints or strings: made, compared with those of another program, imported into, and refused another type. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { importRecords } from '../../src/records/transfer/import-records.ts';
import { raw } from '../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../support/store-world.ts';

const keyed = (id: string): string => `
collections:
  shops: { id: { type: string, column: code }, fields: { name: string } }
  orders:
    id: ${id}
    fields: { name: { type: string, search: true } }
    relations: { shop: { kind: belongs_to, collection: shops }, shops: { kind: many_to_many, collection: shops } }
`;
const SCHEMA = schemaOf(keyed('{ type: int, column: order_no }'));

describe.each(KINDS)('keys on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    await db.run(raw('CREATE TABLE shops (code varchar(9) PRIMARY KEY, name text COLLATE "C")'));
    await db.run(raw('CREATE TABLE orders (order_no integer PRIMARY KEY, name text COLLATE "C", shop_id varchar(9))'));
    await db.run(raw(`INSERT INTO orders (order_no, name) VALUES (41, 'old'), (7, NULL)`));
    await applyMigration(db, SCHEMA);
  });
  afterAll(() => db?.close());

  it('columns of another program keep their types, and the numbers go on after its rows', async () => {
    expect((await planMigration(db, SCHEMA)).statements).toEqual([]);
    const types = await db.rows(
      raw(`
      SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod) FROM pg_attribute
       WHERE attrelid IN ('orders'::regclass, 'orders__shops'::regclass) AND attname IN ('order_no', 'shop_id', 'record_id', 'member_id')
       ORDER BY 1, 2`),
    );
    expect(types.map((row) => [...row])).toEqual([
      ['orders', 'order_no', 'integer'],
      ['orders', 'shop_id', 'character varying(9)'],
      ['orders__shops', 'member_id', 'text'],
      ['orders__shops', 'record_id', 'bigint'],
    ]);
    await db.run(raw(`INSERT INTO orders (name) VALUES ('new')`));
    const rows = await db.rows(raw('SELECT order_no, "name~folded" FROM orders ORDER BY order_no'));
    expect(rows.map((row) => [...row])).toEqual([
      ['7', null],
      ['41', 'old'],
      ['42', null],
    ]);
  });

  it('a schema without search fields does not look for extensions, which reads the files of all', async () => {
    const looksFor = async (schema: string): Promise<boolean> => {
      const asked: string[] = [];
      const rows: Database['rows'] = (statement, options) => {
        asked.push(statement.text);
        return db.rows(statement, options);
      };
      await planMigration({ ...db, rows }, schemaOf(schema));
      return asked.some((text) => text.includes('pg_trgm'));
    };
    const schema = keyed('{ type: int, column: order_no }');
    expect([await looksFor(schema), await looksFor(schema.replace(', search: true', ''))]).toEqual([true, false]);
  });

  it('an import brings ids or gets them, and the database numbers beyond them', async () => {
    async function* records() {
      const shop = { code: 'x' };
      yield {
        line: 1,
        isText: false,
        members: new Map<string, unknown>([
          ['id', 100],
          ['name', 'given'],
          ['shops', []],
        ]),
      };
      yield { line: 2, isText: false, members: new Map<string, unknown>([['name', shop.code]]) };
    }
    const collection = SCHEMA.collections.get('orders')!;
    const now = '2026-01-01T00:00:00.000000Z';
    expect(await importRecords(db, { schema: SCHEMA, collection, records, now })).toEqual({
      created: 2,
      updated: 0,
      skipped: 0,
    });
    await db.run(raw(`INSERT INTO orders (name) VALUES ('after')`));
    const rows = await db.rows(raw('SELECT order_no, name FROM orders WHERE order_no > 42 ORDER BY order_no'));
    expect(rows.map((row) => [...row])).toEqual([
      ['43', 'x'],
      ['100', 'given'],
      ['101', 'after'],
    ]);
  });

  it('ids keep their type', async () => {
    const { destructive } = await planMigration(db, schemaOf(keyed('{ type: uuid, column: order_no }')));
    expect(destructive.map(({ why, kind: risk }) => [risk, why])).toContainEqual([
      'impossible',
      '"orders"."order_no" would change from integer to uuid; the ids of records keep their type: make a new collection',
    ]);
  });
});
