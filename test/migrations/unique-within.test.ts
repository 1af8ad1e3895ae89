// @module-tag long
/** `unique: true` becomes `unique: within_<relation>` and back: the constraints have one name, and rows are checked at all times. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { MigrationRefused, planMigration } from '../../src/migrations/migration.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { raw } from '../../src/sql.ts';
import { hasPostgres, type Kind, ONE_KIND, openKind, schemaOf } from '../support/store-world.ts';

const pages = (unique: string): Schema =>
  schemaOf(`
collections:
  books: {}
  pages:
    fields: { slug: { type: string, unique: ${unique} } }
    relations: { book: { kind: belongs_to, collection: books, required: true } }
`);
const [WHOLE, WITHIN] = [pages('true'), pages('within_book')];
const [RED, BLUE] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
/** As a service does it. */
const START = { keepsExtra: true, mayRewrite: false };
const insert = (slug: string, book: string, column = 'slug') =>
  raw(`INSERT INTO pages (id, ${column}, book_id) VALUES (gen_random_uuid(), '${slug}', '${book}')`);

let db: Database;
afterEach(() => db?.close());

async function open(kind: Kind, schema: Schema): Promise<void> {
  db = await openKind(kind);
  await applyMigration(db, schema);
  await db.run(raw(`INSERT INTO books (id) VALUES ('${RED}'), ('${BLUE}')`));
  await db.run(insert('a', RED));
}

const uniques = async (): Promise<readonly unknown[]> =>
  db.rows(
    raw(
      `SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'pages'::regclass AND contype = 'u'`,
    ),
  );
const WHOLE_KEY = [['pages_slug_key', 'UNIQUE (slug)']];
const WITHIN_KEY = [['pages_slug_key', 'UNIQUE (book_id, slug)']];

async function refused(schema: Schema, options: object = START): Promise<string> {
  const before = await uniques();
  const error = await applyMigration(db, schema, options).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(MigrationRefused);
  expect(await uniques()).toEqual(before);
  return (error as Error).message;
}

describe.each(ONE_KIND)('unique within a relation on %s', (kind) => {
  it.each([
    ['a start', START],
    ['a start over a large table', { ...START, largeFrom: 0 }],
    ['`migrate apply`', {}],
    ['`migrate apply` over a large table', { largeFrom: 0 }],
  ])('a unique constraint within a relation replaces a plain one, and the reverse, at %s', async (_, options) => {
    await open(kind, WHOLE);
    const notes: string[] = [];
    await applyMigration(db, WITHIN, { ...options, onNote: (note) => notes.push(note) });
    expect(await uniques()).toEqual(WITHIN_KEY);
    expect(notes.filter((note) => note.startsWith('kept'))).toEqual([]);
    expect((await planMigration(db, WITHIN, options)).statements).toEqual([]);
    await db.run(insert('a', BLUE));
    await expect(db.run(insert('a', BLUE))).rejects.toMatchObject({ kind: 'unique' });

    const message = await refused(WHOLE, options);
    expect(message).toContain('"pages"."slug" becomes unique, and some rows have equal values');
    expect(await db.rows(raw(/; (SELECT .*) finds them/.exec(message)![1]!))).toEqual([['a']]);
    expect(await refused(WHOLE, { ...options, allowDestructive: true })).toBe(message);

    await db.run(raw(`DELETE FROM pages WHERE book_id = '${BLUE}'`));
    await applyMigration(db, WHOLE, options);
    expect(await uniques()).toEqual(WHOLE_KEY);
    await expect(db.run(insert('a', BLUE))).rejects.toMatchObject({ kind: 'unique' });
  });

  it('a unique constraint within a relation follows a renamed field', async () => {
    await open(kind, WHOLE);
    await applyMigration(
      db,
      schemaOf(`
collections:
  books: {}
  pages:
    fields: { path: { type: string, unique: within_book, was: slug } }
    relations: { book: { kind: belongs_to, collection: books, required: true } }
`),
      { ...START, largeFrom: 0 },
    );
    expect(await uniques()).toEqual([['pages_path_key', 'UNIQUE (book_id, path)']]);
    await db.run(insert('a', BLUE, 'path'));
    await expect(db.run(insert('a', BLUE, 'path'))).rejects.toMatchObject({ kind: 'unique' });
  });

  it('a migration keeps the unique constraint that another version has on another field', async () => {
    await open(kind, WHOLE);
    const other = schemaOf(`
collections:
  books: {}
  pages:
    fields: { slug: string, code: { type: string, unique: within_book } }
    relations: { book: { kind: belongs_to, collection: books, required: true } }
`);
    const notes: string[] = [];
    await applyMigration(db, other, { ...START, onNote: (note) => notes.push(note) });
    expect(notes).toEqual(['kept, though the schema does not have it: unique values of "pages"."slug"']);
    expect((await uniques()).toSorted()).toEqual([['pages_code_key', 'UNIQUE (book_id, code)'], ...WHOLE_KEY]);
  });

  it.each([
    ['not as declared', `UNIQUE NULLS NOT DISTINCT (slug)`, WHOLE],
    ['made weaker', `UNIQUE (slug)`, WITHIN],
  ])(
    'a migration keeps a constraint that a foreign key needs, and names the key, if it is %s',
    async (_, constraint, schema) => {
      await open(kind, WHOLE);
      await db.run(raw('ALTER TABLE pages DROP CONSTRAINT pages_slug_key'));
      await db.run(raw(`ALTER TABLE pages ADD CONSTRAINT pages_slug_key ${constraint}`));
      await db.run(raw('CREATE TABLE others (slug text COLLATE "C" REFERENCES pages (slug))'));
      for (const options of [START, { ...START, largeFrom: 0 }, { allowDestructive: true }]) {
        expect(await refused(schema, options)).toContain(
          'the constraint "pages_slug_key" of "pages" is not as the schema wants it, and foreign keys need it; ' +
            'drop those first: ALTER TABLE others DROP CONSTRAINT others_slug_fkey',
        );
      }
      // At a start, what is not declared is kept anyway.
      await applyMigration(db, pages('false'), START);
      await db.run(raw('ALTER TABLE others DROP CONSTRAINT others_slug_fkey'));
      await applyMigration(db, schema, START);
      expect(await uniques()).toEqual(schema === WHOLE ? WHOLE_KEY : WITHIN_KEY);
    },
  );
});

describe.runIf(hasPostgres)('a large table', () => {
  it('rows stay checked after each statement, and an interrupted change continues or is reverted', async () => {
    for (const [from, to, key] of [
      [WHOLE, WITHIN, WITHIN_KEY],
      [WITHIN, WHOLE, WHOLE_KEY],
    ] as const) {
      for (const next of [to, from]) {
        for (const stop of [0, 1]) {
          await open('postgres', from);
          let seen = 0;
          const onStatement = (): void => {
            if (seen++ === stop) throw new Error('interrupted');
          };
          const interrupted = applyMigration(db, to, { ...START, largeFrom: 0, onStatement });
          await expect(interrupted).rejects.toThrow('interrupted');
          expect(await uniques()).toHaveLength(1);
          await expect(db.run(insert('a', RED))).rejects.toMatchObject({ kind: 'unique' });
          await applyMigration(db, next, { ...START, largeFrom: 0 });
          expect(await uniques()).toEqual(next === to ? key : from === WHOLE ? WHOLE_KEY : WITHIN_KEY);
          const [row] = await db.rows(
            raw(
              `SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexname LIKE 'pages_slug_%key'`,
            ),
          );
          expect(row).toEqual(['1']);
          await db.close();
        }
      }
    }
    await open('postgres', WHOLE);
    const { apart, statements } = await applyMigration(db, WITHIN, { ...START, largeFrom: 0 });
    expect(apart).toEqual([
      'CREATE UNIQUE INDEX CONCURRENTLY "pages_slug_newkey" ON "pages" ("book_id", "slug")',
      'ALTER TABLE "pages" DROP CONSTRAINT "pages_slug_key", ADD CONSTRAINT "pages_slug_key" UNIQUE USING INDEX "pages_slug_newkey"',
    ]);
    expect(statements).toEqual(apart);
  });
});
