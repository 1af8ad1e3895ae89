// @module-tag long
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

test.each(ONE_KIND)('entries of a history follow the names of fields and collections (%s)', async (kind) => {
  const db = await openKind(kind);
  const fields = (field: string): string => `fields: { title: string, ${field} }`;
  await applyMigration(db, collection(`history: true, ${fields('hidden_at: datetime')}`), migrateOptions());
  await db.run(raw(`INSERT INTO notes (id, title, hidden_at) VALUES (gen_random_uuid(), 'one', '2026-01-01')`));
  await db.run(raw('UPDATE notes SET hidden_at = NULL'));
  const field = 'archived_at: { type: datetime, was: hidden_at }';
  const after = collection(`history: true, was: notes, ${fields(field)}`, 'papers');
  const { destructive } = await planMigration(db, after, { ...migrateOptions(), largeFrom: 1 });
  expect(destructive.map(({ why }) => why)).toContainEqual(
    expect.stringContaining('get other names while all writers'),
  );
  await applyMigration(db, after, migrateOptions());
  const rows = await db.rows(
    raw(`SELECT collection, left(before ->> 'archived_at', 10), left(after ->> 'archived_at', 10),
                coalesce(before, '{}') || coalesce(after, '{}') ? 'hidden_at' FROM bylaw_history ORDER BY seq`),
  );
  expect(rows).toEqual([
    ['papers', null, '2026-01-01', 'f'],
    ['papers', '2026-01-01', null, 'f'],
  ]);
  expect((await planMigration(db, after, migrateOptions())).statements).toEqual([]);
  await db.close();
});

const DIVIDED = (field: string): string => `teams: { distribute: reference, fields: { name: string } }, notes: {
  history: true, distribute: { by: team }, fields: { ${field} },
  relations: { team: { kind: belongs_to, collection: teams, required: true } },
  access: { view: '@record.team = @request.query.team' } }`;

test('entries beside the records of a tenant follow the names of fields', async () => {
  const db = await openKind(ONE_KIND[0]!);
  await applyMigration(db, schemaOf(`collections: { ${DIVIDED('hidden_at: datetime')} }`), migrateOptions());
  const tenant = '0190b0a0-0000-7000-8000-000000000001';
  await db.run(
    raw(
      `INSERT INTO bylaw_history_notes (_tenant, record, seq, at, after) VALUES ('${tenant}', 'r', 1, now(), '{"hidden_at": "x"}')`,
    ),
  );
  const after = schemaOf(`collections: { ${DIVIDED('archived_at: { type: datetime, was: hidden_at }')} }`);
  await applyMigration(db, after, migrateOptions());
  expect(await db.rows(raw('SELECT before, after FROM bylaw_history_notes'))).toEqual([[null, '{"archived_at": "x"}']]);
  await db.close();
});
