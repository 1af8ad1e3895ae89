// @module-tag long
/** The table of deleted records follows that of the collection through migrations, and is never dropped unasked. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { historyTables } from '../../src/records/history.ts';
import { raw } from '../../src/sql.ts';
import { ONE_KIND, openKind, schemaOf } from '../support/store-world.ts';

/** The system tables that soft deletion and histories need. */
const OPTIONS = { systemTables: historyTables };
const collection = (notes: string, name = 'notes') => schemaOf(`collections: { ${name}: { ${notes} } }`);
const BEFORE = collection('soft_delete: true, fields: { title: string, n: int }');

describe.each(ONE_KIND)('soft deletion in migrations (%s)', (kind) => {
  let db: Database;
  beforeEach(async () => {
    db = await openKind(kind);
    await applyMigration(db, BEFORE, OPTIONS);
    await db.run(raw(`INSERT INTO notes (id, title, n) VALUES (gen_random_uuid(), 'one', 1)`));
    await db.run(raw('DELETE FROM notes'));
  });
  afterEach(() => db.close());
  const kept = async (columns: string): Promise<unknown> =>
    (await db.rows(raw(`SELECT ${columns} FROM bylaw_deleted_notes`)))[0];

  test('a second plan is empty', async () => {
    expect(await kept('title, n')).toEqual(['one', '1']);
    const { statements } = await planMigration(db, BEFORE, OPTIONS);
    expect(statements).toEqual([]);
  });

  test('new, renamed and dropped fields are those of deleted records too', async () => {
    const after = collection(
      'soft_delete: true, fields: { name: { type: string, was: title }, more: { type: string, required: true, default: x } }',
    );
    await applyMigration(db, after, { ...OPTIONS, allowDestructive: true });
    expect(await kept('name')).toEqual(['one']);
    await db.run(raw(`INSERT INTO notes (id, name) VALUES (gen_random_uuid(), 'two')`));
    await db.run(raw('DELETE FROM notes'));
    const rows = await db.rows(raw('SELECT name, more FROM bylaw_deleted_notes ORDER BY name'));
    expect(rows.map(([name]) => name)).toEqual(['one', 'two']);
    expect((await planMigration(db, after, OPTIONS)).statements).toEqual([]);
  });

  test('a renamed collection takes its deleted records along', async () => {
    const after = collection('was: notes, soft_delete: true, fields: { title: string, n: int }', 'papers');
    await applyMigration(db, after, OPTIONS);
    const rows = await db.rows(raw('SELECT title FROM bylaw_deleted_papers'));
    expect(rows).toEqual([['one']]);
    await db.run(raw(`INSERT INTO papers (id, title) VALUES (gen_random_uuid(), 'two')`));
    await db.run(raw('DELETE FROM papers'));
    expect((await db.rows(raw('SELECT title FROM bylaw_deleted_papers'))).length).toBe(2);
  });

  test('a collection without soft deletion keeps its deleted records until the operator consents', async () => {
    const after = collection('fields: { title: string, n: int }');
    const { destructive } = await planMigration(db, after, OPTIONS);
    expect(destructive.map(({ sql }) => sql)).toEqual([expect.stringContaining('bylaw_deleted_notes')]);
    await applyMigration(db, after, { ...OPTIONS, keepsExtra: true });
    expect(await kept('title')).toEqual(['one']);
    await applyMigration(db, after, { ...OPTIONS, allowDestructive: true });
    const [row] = await db.rows(raw(`SELECT to_regclass('bylaw_deleted_notes')`));
    expect(row).toEqual([null]);
    await db.run(raw(`INSERT INTO notes (id, title) VALUES (gen_random_uuid(), 'two')`));
    await db.run(raw('DELETE FROM notes'));
  });
});

interface LinkedNames {
  readonly posts: string;
  readonly relation: string;
  readonly labels: string;
  /** A former name, of each. */
  readonly was?: Omit<LinkedNames, 'was'>;
}

function linkedSchema({ posts, relation, labels, was }: LinkedNames) {
  const former = (name: string, old: string | undefined): string =>
    old === undefined || old === name ? '' : `was: ${old},`;
  return schemaOf(`collections: {
    ${posts}: { ${former(posts, was?.posts)} soft_delete: true, fields: { title: string }, relations: {
      ${relation}: { ${former(relation, was?.relation)} kind: many_to_many, collection: ${labels} },
      near: { kind: many_to_many, collection: ${posts} } } },
    ${labels}: { ${former(labels, was?.labels)} soft_delete: true, fields: { label: string } } }`);
}

const LINKED: LinkedNames = { posts: 'posts', relation: 'tags', labels: 'labels' };
const [ONE, TWO] = ['0190b0a0-0000-7000-8000-000000000001', '0190b0a0-0000-7000-8000-000000000002'];

describe.each(ONE_KIND)('links of deleted records (%s)', (kind) => {
  let db: Database;
  beforeEach(async () => {
    db = await openKind(kind);
    await applyMigration(db, linkedSchema(LINKED), OPTIONS);
    for (const table of ['posts', 'labels'])
      await db.run(raw(`INSERT INTO ${table} (id) VALUES ('${ONE}'), ('${TWO}')`));
    const insert = (table: string, ...ids: readonly string[]) =>
      db.run(raw(`INSERT INTO posts__${table} (record_id, member_id) VALUES ('${ids.join("', '")}')`));
    await insert('tags', ONE, ONE);
    await insert('tags', TWO, TWO);
    await insert('near', ONE, TWO);
    await db.run(raw(`DELETE FROM posts WHERE id = '${ONE}'`));
    await db.run(raw(`DELETE FROM labels WHERE id = '${TWO}'`));
  });
  afterEach(() => db.close());

  test.each<readonly [string, LinkedNames]>([
    ['relation', { ...LINKED, relation: 'topics' }],
    ['collection', { ...LINKED, posts: 'articles' }],
    ['collection of members', { ...LINKED, labels: 'marks' }],
    ['collection and its relation', { posts: 'articles', relation: 'topics', labels: 'marks' }],
  ])('links follow a renamed %s', async (_, names) => {
    const after = linkedSchema({ ...names, was: LINKED });
    await applyMigration(db, after, OPTIONS);
    const links = async (table: string) =>
      JSON.parse((await db.rows(raw(`SELECT _links FROM bylaw_deleted_${table}`)))[0]![0]!);
    const { posts, relation, labels } = names;
    expect(await links(posts)).toEqual({
      [`${posts}__${relation}.record_id`]: [ONE],
      [`${posts}__near.record_id`]: [TWO],
      [`${posts}__near.member_id`]: [],
    });
    expect(await links(labels)).toEqual({ [`${posts}__${relation}.member_id`]: [TWO] });
    expect((await planMigration(db, after, OPTIONS)).statements).toEqual([]);
  });

  test('the new names need consent where the table is large', async () => {
    const after = linkedSchema({ ...LINKED, relation: 'topics', was: LINKED });
    const { destructive } = await planMigration(db, after, { ...OPTIONS, largeFrom: 1 });
    expect(destructive.map(({ why }) => why)).toContain(
      'the links in `bylaw_deleted_posts` get other names while all writers of the collection wait',
    );
  });
});

test.each(ONE_KIND)('a history follows its collection, and a second plan is empty (%s)', async (kind) => {
  const db = await openKind(kind);
  const before = collection('history: true, fields: { title: string }');
  await applyMigration(db, before, OPTIONS);
  await db.run(raw(`INSERT INTO notes (id, title) VALUES (gen_random_uuid(), 'one')`));
  expect((await planMigration(db, before, OPTIONS)).statements).toEqual([]);
  const after = collection('history: true, fields: { title: string, more: int }');
  await applyMigration(db, after, OPTIONS);
  await db.run(raw('UPDATE notes SET more = 1'));
  const rows = await db.rows(raw(`SELECT before ->> 'more', after ->> 'more' FROM bylaw_history ORDER BY seq`));
  expect(rows).toEqual([
    [null, null],
    [null, '1'],
  ]);
  await applyMigration(db, collection('fields: { title: string, more: int }'), OPTIONS);
  await db.run(raw('UPDATE notes SET more = 2'));
  expect((await db.rows(raw('SELECT 1 FROM bylaw_history'))).length).toBe(2);
  await db.close();
});

test.each(ONE_KIND)('entries of a history follow the names of fields and collections (%s)', async (kind) => {
  const db = await openKind(kind);
  const fields = (field: string): string => `fields: { title: string, ${field} }`;
  await applyMigration(db, collection(`history: true, ${fields('hidden_at: datetime')}`), OPTIONS);
  await db.run(raw(`INSERT INTO notes (id, title, hidden_at) VALUES (gen_random_uuid(), 'one', '2026-01-01')`));
  await db.run(raw('UPDATE notes SET hidden_at = NULL'));
  const field = 'archived_at: { type: datetime, was: hidden_at }';
  const after = collection(`history: true, was: notes, ${fields(field)}`, 'papers');
  const { destructive } = await planMigration(db, after, { ...OPTIONS, largeFrom: 1 });
  expect(destructive.map(({ why }) => why)).toContainEqual(
    expect.stringContaining('get other names while all writers'),
  );
  await applyMigration(db, after, OPTIONS);
  const rows = await db.rows(
    raw(`SELECT collection, left(before ->> 'archived_at', 10), left(after ->> 'archived_at', 10),
                coalesce(before, '{}') || coalesce(after, '{}') ? 'hidden_at' FROM bylaw_history ORDER BY seq`),
  );
  expect(rows).toEqual([
    ['papers', null, '2026-01-01', 'f'],
    ['papers', '2026-01-01', null, 'f'],
  ]);
  expect((await planMigration(db, after, OPTIONS)).statements).toEqual([]);
  await db.close();
});

const DIVIDED = (field: string): string => `teams: { distribute: reference, fields: { name: string } }, notes: {
  history: true, distribute: { by: team }, fields: { ${field} },
  relations: { team: { kind: belongs_to, collection: teams, required: true } },
  access: { view: '@record.team = @request.query.team' } }`;

test('entries beside the records of a tenant follow the names of fields', async () => {
  const db = await openKind(ONE_KIND[0]!);
  await applyMigration(db, schemaOf(`collections: { ${DIVIDED('hidden_at: datetime')} }`), OPTIONS);
  const tenant = '0190b0a0-0000-7000-8000-000000000001';
  await db.run(
    raw(
      `INSERT INTO bylaw_history_notes (_tenant, record, seq, at, after) VALUES ('${tenant}', 'r', 1, now(), '{"hidden_at": "x"}')`,
    ),
  );
  const after = schemaOf(`collections: { ${DIVIDED('archived_at: { type: datetime, was: hidden_at }')} }`);
  await applyMigration(db, after, OPTIONS);
  expect(await db.rows(raw('SELECT before, after FROM bylaw_history_notes'))).toEqual([[null, '{"archived_at": "x"}']]);
  await db.close();
});

const OLDER = collection('history: true, soft_delete: true, fields: { title: string, on: bool }');
const NEWER = collection(
  'history: true, soft_delete: true, fields: { title: string, extra: { type: string, default: x, required: true }, sure: bool, on: bool }',
);
const functions = (name: string) =>
  raw(`SELECT prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname LIKE '${name}%'`);

describe.each(ONE_KIND)('an older start beside newer nodes (%s)', (kind) => {
  let db: Database;
  const start = (schema: typeof OLDER) => applyMigration(db, schema, { ...OPTIONS, keepsExtra: true });
  const deletes = async (): Promise<readonly (readonly unknown[])[]> => {
    await db.run(raw(`INSERT INTO notes (id, title, extra, sure) VALUES (gen_random_uuid(), 'two', 'own', true)`));
    await db.run(raw('DELETE FROM notes'));
    const kept = await db.rows(raw(`SELECT extra, sure FROM bylaw_deleted_notes`));
    const past = await db.rows(
      raw(`SELECT before ->> 'extra', before ->> 'sure' FROM bylaw_history WHERE after IS NULL`),
    );
    return [...kept, ...past].map((cells) => [...cells]);
  };
  beforeEach(async () => {
    db = await openKind(kind);
  });
  afterEach(() => db.close());

  test('the start changes no function, so deleted rows and histories keep the columns of newer nodes', async () => {
    await start(OLDER);
    await start(NEWER);
    const made = await db.rows(functions('bylaw_'));
    expect((await start(OLDER)).statements).toEqual([]);
    expect(await db.rows(functions('bylaw_'))).toEqual(made);
    expect(await deletes()).toEqual([
      ['own', 't'],
      ['own', 't'],
    ]);
    expect((await planMigration(db, NEWER, OPTIONS)).statements).toEqual([]);
  });

  test('functions that an older start makes anew have the columns of newer nodes', async () => {
    await start(NEWER);
    const made = await db.rows(functions('bylaw_'));
    for (const prefix of ['bylaw_keep_', 'bylaw_past_']) {
      const [row] = await db.rows(
        raw(
          `SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname LIKE '${prefix}%'`,
        ),
      );
      await db.run(raw(`DROP FUNCTION ${row![0]}() CASCADE`));
    }
    await start(OLDER);
    expect(await db.rows(functions('bylaw_'))).toEqual(made);
    expect((await planMigration(db, NEWER, OPTIONS)).statements).toEqual([]);
  });

  test('a removed field keeps its values until the operator consents to the loss of the column', async () => {
    await start(NEWER);
    await start(OLDER);
    expect(await deletes()).toEqual([
      ['own', 't'],
      ['own', 't'],
    ]);
    await applyMigration(db, OLDER, { ...OPTIONS, allowDestructive: true });
    expect((await planMigration(db, OLDER, OPTIONS)).statements).toEqual([]);
    await db.run(raw(`INSERT INTO notes (id, title) VALUES (gen_random_uuid(), 'three')`));
    await db.run(raw(`DELETE FROM notes`));
    expect(await db.rows(raw(`SELECT title FROM bylaw_deleted_notes ORDER BY title`))).toEqual([['three'], ['two']]);
    const [entry] = await db.rows(raw(`SELECT before ? 'extra' FROM bylaw_history ORDER BY seq DESC LIMIT 1`));
    expect(entry).toEqual(['f']);
  });

  test('deleted rows keep the links of a relation that only newer nodes have, until its table is dropped', async () => {
    const withTags = (relation: string) =>
      schemaOf(
        `collections: { tags: {}, notes: { soft_delete: true, fields: { title: string }, relations: { ${relation} } } }`,
      );
    const older = withTags('');
    const newer = withTags(
      'a_tags: { kind: many_to_many, collection: tags }, notes: { kind: many_to_many, collection: notes }',
    );
    await start(older);
    await start(newer);
    expect((await start(older)).statements).toEqual([]);
    const id = '01900000-0000-7000-8000-000000000001';
    await db.run(raw(`INSERT INTO tags (id) VALUES ('${id}')`));
    await db.run(raw(`INSERT INTO notes (id, title) VALUES ('${id}', 'linked')`));
    await db.run(raw(`INSERT INTO notes__a_tags VALUES ('${id}', '${id}')`));
    await db.run(raw('DELETE FROM notes'));
    const links = raw(
      `SELECT jsonb_path_query_array(_links, '$.*[*]') FROM bylaw_deleted_notes WHERE title = 'linked'`,
    );
    expect(await db.rows(links)).toEqual([[`["${id}"]`]]);
    await applyMigration(db, older, { ...OPTIONS, allowDestructive: true });
    expect((await planMigration(db, older, OPTIONS)).statements).toEqual([]);
    await db.run(raw(`INSERT INTO notes (id, title) VALUES ('${id}', 'alone')`));
    await db.run(raw('DELETE FROM notes'));
    expect(await db.rows(raw('SELECT title, _links FROM bylaw_deleted_notes'))).toEqual([['alone', '{}']]);
  });
});
