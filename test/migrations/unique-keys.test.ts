// @module-tag long
/** The indexes of `unique: { within, where, ignore_case }`: made, rebuilt, dropped, and refused where rows do not allow them. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { MigrationRefused, planMigration } from '../../src/migrations/migration.ts';
import { hasAllOf } from '../../src/migrations/readiness.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { raw } from '../../src/sql.ts';
import { ONE_KIND, openKind, schemaOf } from '../support/store-world.ts';

const pages = (slug: string, more = 'archived: { type: bool, required: true, default: false }'): Schema =>
  schemaOf(`
collections:
  books: {}
  pages:
    fields:
      slug: { type: string, ${slug} }
      kind: { type: string, required: true, default: 'it''s' }
      ${more}
    relations: { book: { kind: belongs_to, collection: books, required: true } }
`);
const PLAIN = pages('max: 80');
const LIVE = pages(`unique: { where: '@record.archived = false' }`);
const FOLDED = pages(
  `unique: { within: [book, kind], where: '@record.archived = false and @record.kind != "\\\\"', ignore_case: true }`,
);
const WITHIN = pages('unique: { within: [book, kind] }');
const RED = '11111111-1111-4111-8111-111111111111';
const insert = (slug: string, column = 'slug') =>
  raw(`INSERT INTO pages (id, ${column}, kind, book_id) VALUES (gen_random_uuid(), '${slug}', 'k', '${RED}')`);

let db: Database;
afterEach(() => db?.close());

const indexes = async (table = 'pages'): Promise<readonly string[]> => {
  const rows = await db.rows(
    raw(
      `SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = '${table}'::regclass AND indisunique AND NOT indisprimary`,
    ),
  );
  return rows.map(([definition]) =>
    definition!.replace(/_[0-9a-f]{8}_only/, '_…_only').replaceAll(/ (ON|ONLY) \w+\./g, ' $1 '),
  );
};
const LIVE_INDEX = ['CREATE UNIQUE INDEX pages_slug_…_only ON pages USING btree (slug) WHERE (NOT archived)'];

async function refused(schema: Schema, options: object = {}): Promise<string> {
  const error = await applyMigration(db, schema, options).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(MigrationRefused);
  return (error as Error).message;
}

describe.each(ONE_KIND)('unique keys on %s', (kind) => {
  async function open(schema: Schema): Promise<void> {
    db = await openKind(kind);
    await applyMigration(db, schema);
    await db.run(raw(`INSERT INTO books (id) VALUES ('${RED}')`));
  }

  it.each([
    ['at once', {}],
    ['while the table is in use', { largeFrom: 0 }],
  ])('the indexes are made, changed and dropped %s', async (_, options) => {
    await open(PLAIN);
    await db.run(insert('a'));
    await applyMigration(db, LIVE, options);
    expect(await indexes()).toEqual(LIVE_INDEX);
    expect((await planMigration(db, LIVE, options)).statements).toEqual([]);
    expect(await hasAllOf(db, LIVE)).toBe(true);
    await applyMigration(db, FOLDED, options);
    expect(await indexes()).toEqual([
      `CREATE UNIQUE INDEX pages_slug_…_only ON pages USING btree (book_id, kind, lower((slug COLLATE "und-x-icu")) COLLATE "C") ` +
        `WHERE ((NOT archived) AND (kind <> '\\'::text))`,
    ]);
    expect((await planMigration(db, FOLDED, options)).statements).toEqual([]);
    await applyMigration(db, WITHIN, options);
    expect(await indexes()).toEqual(['CREATE UNIQUE INDEX pages_slug_key ON pages USING btree (book_id, kind, slug)']);
    await applyMigration(db, PLAIN, options);
    expect(await indexes()).toEqual([]);
  });

  it('the indexes are refused while rows have equal values, with the query that finds them', async () => {
    await open(PLAIN);
    await db.run(insert('a'));
    await db.run(insert('A'));
    await applyMigration(db, LIVE);
    const why = await refused(FOLDED);
    expect(why).toContain('"pages"."slug" becomes unique, and some rows have equal values; change them first; SELECT ');
    const query = /change them first; (SELECT .*) finds them/.exec(why)![1]!;
    expect(await db.rows(raw(query))).toEqual([[RED, 'k', 'a']]);
    await db.run(raw(`UPDATE pages SET archived = true WHERE slug = 'A'`));
    await applyMigration(db, FOLDED);
  });

  it('migrations look at the values that new and renamed columns will have', async () => {
    await open(pages('max: 80', 'n: int'));
    await db.run(insert('a'));
    await db.run(insert('a'));
    expect(await refused(LIVE, { allowDestructive: true })).toContain('some rows have equal values');
    const renamed = schemaOf(`
collections:
  books: {}
  leaves:
    was: pages
    fields: { path: { type: string, was: slug, unique: { where: '@record.kind = "k"' } }, kind: { type: string, required: true } }
    relations: { book: { kind: belongs_to, collection: books, required: true } }
`);
    expect(await refused(renamed, { allowDestructive: true })).toContain('"leaves"."path" becomes unique');
    await db.run(raw(`DELETE FROM pages`));
    await db.run(insert('a'));
    await applyMigration(db, renamed, { allowDestructive: true });
    expect(await indexes('leaves')).toEqual([
      `CREATE UNIQUE INDEX leaves_path_…_only ON leaves USING btree (path) WHERE (kind = 'k'::text)`,
    ]);
  });

  it('the indexes go with a column that their condition reads', async () => {
    await open(LIVE);
    await applyMigration(db, pages('max: 80', 'n: int'), { allowDestructive: true });
    expect(await indexes()).toEqual([]);
  });

  it('the indexes stay for nodes of a newer version', async () => {
    await open(LIVE);
    await applyMigration(db, PLAIN, { keepsExtra: true, mayRewrite: false });
    expect(await indexes()).toEqual(LIVE_INDEX);
  });

  it('migrations continue after an interruption', async () => {
    await open(LIVE);
    const isOurs = `indrelid = 'pages'::regclass AND NOT indisprimary`;
    await db.run(raw(`UPDATE pg_index SET indisvalid = false WHERE ${isOurs}`));
    expect(await db.rows(raw(`SELECT indisvalid FROM pg_index WHERE ${isOurs}`))).toContainEqual(['f']);
    await applyMigration(db, LIVE);
    expect(await db.rows(raw(`SELECT indisvalid FROM pg_index WHERE ${isOurs}`))).not.toContainEqual(['f']);
    expect(await indexes()).toEqual(LIVE_INDEX);
  });

  it('the indexes are kept when the rows are divided by tenants', async () => {
    const [one, divided] = ['', 'distribute: { by: book }'].map((distribute) =>
      schemaOf(`
collections:
  books: { distribute: reference }
  pages:
    ${distribute}
    fields: { slug: { type: string, unique: { within: book, where: '@record.kind = "k"' } }, kind: { type: string, required: true } }
    relations: { book: { kind: belongs_to, collection: books, required: true } }
`),
    ) as [Schema, Schema];
    await open(one);
    await db.run(insert('a'));
    await applyMigration(db, divided);
    expect(await indexes()).toEqual([
      `CREATE UNIQUE INDEX pages_slug_…_only ON ONLY pages USING btree (book_id, slug) WHERE (kind = 'k'::text)`,
    ]);
    await expect(db.run(insert('a'))).rejects.toThrow('unique');
  });
});
