/** The table of deleted records follows that of the collection through migrations, and is never dropped unasked. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { migrateOptions } from '../../src/service/system-tables.ts';
import { raw } from '../../src/sql.ts';
import { ONE_KIND, openKind, schemaOf } from '../support/store-world.ts';

const collection = (notes: string, name = 'notes') => schemaOf(`collections: { ${name}: { ${notes} } }`);
const BEFORE = collection('soft_delete: true, fields: { title: string, n: int }');

describe.each(ONE_KIND)('soft deletion in migrations (%s)', (kind) => {
  let db: Database;
  beforeEach(async () => {
    db = await openKind(kind);
    await applyMigration(db, BEFORE, migrateOptions());
    await db.run(raw(`INSERT INTO notes (id, title, n) VALUES (gen_random_uuid(), 'one', 1)`));
    await db.run(raw('DELETE FROM notes'));
  });
  afterEach(() => db.close());
  const kept = async (columns: string): Promise<unknown> =>
    (await db.rows(raw(`SELECT ${columns} FROM bylaw_deleted_notes`)))[0];

  test('a second plan is empty', async () => {
    expect(await kept('title, n')).toEqual(['one', '1']);
    const { statements } = await planMigration(db, BEFORE, migrateOptions());
    expect(statements).toEqual([]);
  });

  test('new, renamed and dropped fields are those of deleted records too', async () => {
    const after = collection(
      'soft_delete: true, fields: { name: { type: string, was: title }, more: { type: string, required: true, default: x } }',
    );
    await applyMigration(db, after, { ...migrateOptions(), allowDestructive: true });
    expect(await kept('name')).toEqual(['one']);
    await db.run(raw(`INSERT INTO notes (id, name) VALUES (gen_random_uuid(), 'two')`));
    await db.run(raw('DELETE FROM notes'));
    const rows = await db.rows(raw('SELECT name, more FROM bylaw_deleted_notes ORDER BY name'));
    expect(rows.map(([name]) => name)).toEqual(['one', 'two']);
    expect((await planMigration(db, after, migrateOptions())).statements).toEqual([]);
  });

  test('a renamed collection takes its deleted records along', async () => {
    const after = collection('was: notes, soft_delete: true, fields: { title: string, n: int }', 'papers');
    await applyMigration(db, after, migrateOptions());
    const rows = await db.rows(raw('SELECT title FROM bylaw_deleted_papers'));
    expect(rows).toEqual([['one']]);
    await db.run(raw(`INSERT INTO papers (id, title) VALUES (gen_random_uuid(), 'two')`));
    await db.run(raw('DELETE FROM papers'));
    expect((await db.rows(raw('SELECT title FROM bylaw_deleted_papers'))).length).toBe(2);
  });

  test('a collection without soft deletion keeps its deleted records until the operator consents', async () => {
    const after = collection('fields: { title: string, n: int }');
    const { destructive } = await planMigration(db, after, migrateOptions());
    expect(destructive.map(({ sql }) => sql)).toEqual([expect.stringContaining('bylaw_deleted_notes')]);
    await applyMigration(db, after, { ...migrateOptions(), keepsExtra: true });
    expect(await kept('title')).toEqual(['one']);
    await applyMigration(db, after, { ...migrateOptions(), allowDestructive: true });
    const [row] = await db.rows(raw(`SELECT to_regclass('bylaw_deleted_notes')`));
    expect(row).toEqual([null]);
    await db.run(raw(`INSERT INTO notes (id, title) VALUES (gen_random_uuid(), 'two')`));
    await db.run(raw('DELETE FROM notes'));
  });
});

test.each(ONE_KIND)('a history follows its collection, and a second plan is empty (%s)', async (kind) => {
  const db = await openKind(kind);
  const before = collection('history: true, fields: { title: string }');
  await applyMigration(db, before, migrateOptions());
  await db.run(raw(`INSERT INTO notes (id, title) VALUES (gen_random_uuid(), 'one')`));
  expect((await planMigration(db, before, migrateOptions())).statements).toEqual([]);
  const after = collection('history: true, fields: { title: string, more: int }');
  await applyMigration(db, after, migrateOptions());
  await db.run(raw('UPDATE notes SET more = 1'));
  const rows = await db.rows(raw(`SELECT before ->> 'more', after ->> 'more' FROM bylaw_history ORDER BY seq`));
  expect(rows).toEqual([
    [null, null],
    [null, '1'],
  ]);
  await applyMigration(db, collection('fields: { title: string, more: int }'), migrateOptions());
  await db.run(raw('UPDATE notes SET more = 2'));
  expect((await db.rows(raw('SELECT 1 FROM bylaw_history'))).length).toBe(2);
  await db.close();
});
