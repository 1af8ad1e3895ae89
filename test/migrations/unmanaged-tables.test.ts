/** `managed: false`: no migration touches the table, and differences are errors, or notes with the SQL for its owner. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { ownersNotes, planMigration } from '../../src/migrations/migration.ts';
import { raw } from '../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../support/store-world.ts';

const ACCESS = 'access: { list: true, create: true, delete: true }';

describe.each(KINDS)('tables of other owners on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
    for (const statement of [
      'CREATE SCHEMA own',
      'CREATE TABLE own.customers (id uuid PRIMARY KEY)',
      `CREATE TABLE own.orders (id uuid PRIMARY KEY, cust uuid, total numeric, due timestamp, code varchar(9), n smallint, need text NOT NULL,
         mood text, ok bigint)`,
      'CREATE TABLE own.loose (id uuid, one uuid)',
      'CREATE VIEW own.sums AS SELECT gen_random_uuid() AS id, count(*) AS n FROM own.orders',
      'CREATE TABLE former (id uuid PRIMARY KEY, text text)',
    ])
      await db.run(raw(statement));
  });
  afterAll(() => db?.close());

  const orders = (fields: string, more = ''): string => `
collections:
  customers: { table: own.customers, managed: false, timestamps: none, ${ACCESS} }
  orders:
    table: own.orders
    managed: false
    timestamps: none
    fields: { ${fields} }
    relations: { customer: { kind: belongs_to, collection: customers, column: cust, required: true } }
    ${ACCESS}
${more}`;
  const refused = async (text: string): Promise<readonly string[]> => {
    const error = await applyMigration(db, schemaOf(text)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'UnservableTables' });
    return (error as Error).message.split('\n').slice(1);
  };
  const shapeOfAll = async (): Promise<unknown> =>
    (
      await db.rows(
        raw(`SELECT c.relname, a.attname, a.atttypid::regtype, a.attnotnull
               FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
              WHERE c.relnamespace = 'own'::regnamespace AND a.attnum > 0 ORDER BY 1, 2`),
      )
    ).map((cells) => [...cells]);

  it('a table that cannot be served ends the migration with every reason', async () => {
    const text = orders(
      'total: { type: decimal, precision: 9, scale: 2 }, due: datetime, gone: int, code: string, n: int',
      `
  missing: { table: own.missing, managed: false }
  loose:
    table: own.loose
    managed: false
    timestamps: none
    relations: { one: { kind: belongs_to, collection: customers, column: one } }
`,
    ).replace('own.customers,', 'own.customers, relations: { only: { kind: has_one, collection: loose, via: one } },');
    expect(await refused(text)).toEqual([
      '- "own.orders"."total" (`orders.total`) is numeric; expected numeric(9,2); or write `stored_as: numeric`',
      '- "own.orders"."due" (`orders.due`) is timestamp without time zone; expected timestamp with time zone; or write `stored_as: timestamp`',
      '- "own.orders"."gone" (`orders.gone`) does not exist; name another column by `column`, or: ALTER TABLE "own"."orders" ADD COLUMN "gone" bigint',
      '- `missing`: the table or view "own.missing" does not exist; correct `table`',
      '- "own.loose"."id" (`loose`) is not unique; its owner may run: ALTER TABLE "own"."loose" ADD UNIQUE ("id")',
      '- "own.loose"."one" (`loose`) is not unique, and the schema says so by a has_one; declare a has_many',
    ]);
  });

  it('a column of a time has any number of decimals', async () => {
    await db.run(raw('CREATE TABLE own.visits (id uuid PRIMARY KEY, a timestamp(6), b timestamptz(3), c time(0))'));
    const fields = '{ a: datetime, b: datetime, c: time }';
    const text = `collections: { visits: { table: own.visits, managed: false, timestamps: none, fields: ${fields} } }`;
    expect(await refused(text)).toEqual([
      '- "own.visits"."a" (`visits.a`) is timestamp(6) without time zone; expected timestamp with time zone; or write `stored_as: timestamp`',
    ]);
    const stored = text.replace('a: datetime', 'a: { type: datetime, stored_as: timestamp }');
    expect(await ownersNotes(db, schemaOf(stored))).toEqual([]);
    expect(await planMigration(db, schemaOf(stored))).toBeDefined();
  });

  it('a key of two columns is unique, and never null', async () => {
    const key = `
  loose:
    table: own.loose
    managed: false
    timestamps: none
    id: [mark, single]
    fields: { mark: { type: uuid, column: id }, single: { type: uuid, column: one } }
`;
    const errors = await refused(orders('n: int', key));
    const alter = 'its owner may run: ALTER TABLE "own"."loose"';
    expect(errors.filter((line) => line.includes('loose'))).toEqual([
      `- "own.loose"."id", "one" (\`loose\`) is not unique; ${alter} ADD UNIQUE ("id", "one")`,
      `- "own.loose"."id" (\`loose\`) is in the key and may be null; ${alter} ALTER COLUMN "id" SET NOT NULL`,
      `- "own.loose"."one" (\`loose\`) is in the key and may be null; ${alter} ALTER COLUMN "one" SET NOT NULL`,
    ]);
  });

  it('other differences are notes with the SQL that the owner may run, which mends them', async () => {
    const text = orders(
      'code: { type: string, unique: true, required: true }, n: { type: int, index: true }',
      `  sums: { table: own.sums, managed: false, timestamps: none, fields: { n: int }, ${ACCESS} }\n`,
    );
    const before = await shapeOfAll();
    await applyMigration(db, schemaOf(text));
    expect(await shapeOfAll()).toEqual(before);
    expect((await planMigration(db, schemaOf(text))).statements).toEqual([]);
    const notes = await ownersNotes(db, schemaOf(text));
    expect(notes).toEqual([
      {
        text: '"own.orders"."code" (`orders.code`) may be null, and the schema says `required`: records without a value show null',
        sql: 'ALTER TABLE "own"."orders" ALTER COLUMN "code" SET NOT NULL',
      },
      {
        text: '"own.orders"."cust" (`orders.customer`) may be null, and the schema says `required`: records without a value show null',
        sql: 'ALTER TABLE "own"."orders" ALTER COLUMN "cust" SET NOT NULL',
      },
      {
        text: '"own.orders"."code" (`orders`) is not unique, and the schema says so',
        sql: 'ALTER TABLE "own"."orders" ADD UNIQUE ("code")',
      },
      { text: 'no index serves "own.orders"."n" (`orders`)', sql: 'CREATE INDEX ON "own"."orders" ("n", "id")' },
      { text: 'no index serves "own.orders"."cust" (`orders`)', sql: 'CREATE INDEX ON "own"."orders" ("cust", "id")' },
      {
        text: '"own.orders"."cust" (`orders.customer`) has no foreign key, so the record that it names may be missing',
        sql: 'ALTER TABLE "own"."orders" ADD FOREIGN KEY ("cust") REFERENCES "own"."customers" ("id")',
      },
      {
        text: '"own.orders" (`orders`) needs values of "need", which the schema does not have: no record can be created',
      },
      { text: 'the database takes no create, delete of "own.sums" (`sums`) from the service' },
    ]);
    for (const { sql } of notes) if (sql !== undefined) await db.run(raw(sql));
    expect((await ownersNotes(db, schemaOf(text))).map((note) => note.sql)).toEqual([undefined, undefined]);
  });

  it('a unique index with a condition, or of folded values, is a note with its SQL', async () => {
    const keys: readonly (readonly [unique: string, sql: RegExp])[] = [
      [
        "{ where: '@record.n > 1' }",
        /^CREATE UNIQUE INDEX "[^"]+" ON "own"\."orders" \("code"\) WHERE "orders"\."n" > /,
      ],
      ['{ ignore_case: true }', /^CREATE UNIQUE INDEX "[^"]+" ON "own"\."orders" \(\(lower\("code" /],
    ];
    await db.run(raw('ALTER TABLE own.orders DROP CONSTRAINT IF EXISTS orders_code_key'));
    for (const [unique, sql] of keys) {
      const schema = schemaOf(orders(`code: { type: string, max: 9, unique: ${unique} }, n: int`));
      const noted = async () => (await ownersNotes(db, schema)).filter(({ text }) => text.includes('is not unique'));
      const [note, ...more] = await noted();
      expect([note, more]).toEqual([
        { text: '"own.orders"."code" (`orders`) is not unique as the schema says', sql: expect.stringMatching(sql) },
        [],
      ]);
      await db.run(raw(note!.sql!));
      expect(await noted()).toEqual([]);
    }
  });

  it('a table that was managed before is neither renamed, changed nor dropped', async () => {
    const managed = 'collections: { former: { fields: { text: string } } }';
    await applyMigration(db, schemaOf(managed));
    for (const table of ['former', 'public.former'].slice(0, kind === 'embedded' ? 2 : 1)) {
      const text = `
collections:
  latter: { table: latter_rows, was: former, fields: { text: string } }
  theirs: { table: ${table}, managed: false, fields: { text: string } }
`;
      const { statements, destructive } = await planMigration(db, schemaOf(text));
      expect([statements.filter((statement) => /"former"/.test(statement)), destructive]).toEqual([[], []]);
    }
  });
});

describe('keys that a table of another owner cannot follow', () => {
  it.each([
    ['was: before', 'no migration renames it'],
    ['distribute: reference', 'its owner decides where rows are'],
    ['fields: { a: { type: string, search: true } }', '`search` needs a column that the service adds'],
    ['fields: { a: { type: string, was: b } }', 'no migration renames columns'],
  ])('%s is an error', (key, message) => {
    expect(() => schemaOf(`collections: { theirs: { managed: false, ${key} } }`)).toThrow(message);
  });

  it('users are the service’s own', () => {
    expect(() => schemaOf('collections: { users: { managed: false } }')).toThrow('is a table of the service');
  });
});
