// @module-tag partitions
/** Search fields on both databases: the folded copy beside the field, in every write and after every migration. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { planMigration } from '../../src/migrations/migration.ts';
import { raw } from '../../src/sql.ts';
import { hasPartitions } from '../support/cluster/partitioned.ts';
import { type Caller, KINDS, openKind, refusal, schemaOf, World } from '../support/store-world.ts';

const schema = (title: string): string => `
roles: [member]
collections:
  groups: { fields: { name: { type: string, search: true } } }
  notes:
    fields:
      title: ${title}
      text: { type: string, search: true, default: 'Straße' }
    relations: { group: { kind: belongs_to, collection: groups } }
    access:
      view: '@record.title matches @request.query.q or @record.group.name matches @request.query.q'
      create: 'not (@record.text matches "forbidden")'
      update: 'not (@record.text matches "forbidden") and (@request.query.q is null or @record.title matches @request.query.q)'
`;
const SEARCHED = '{ type: string, search: true }';

describe.each(KINDS)('%s', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, schema(SEARCHED));
    ann = await world.user('ann@example.com');
  });
  afterAll(() => db?.close());

  const cells = async (columns: string, from = 'notes'): Promise<readonly (readonly unknown[])[]> =>
    (await db.rows(raw(`SELECT ${columns} FROM ${from} ORDER BY id`))).map((row) => [...row]);
  const found = async (q: string, of = ann): Promise<unknown[]> =>
    (await of.list('notes', {}, { query: { q } })).data.map(({ title }: { title: string }) => title);

  it('a search ignores letter case and accents, and shows no copy', async () => {
    await ann.create('notes', { title: 'Müller & Söhne' });
    await ann.create('notes', { title: 'ΟΔΥΣΣΕΥΣ 100%' });
    await ann.create('notes', { title: null, text: 'FORBIDDE' });
    expect(await found('MULLER')).toEqual(['Müller & Söhne']);
    expect(await found('σσευς')).toEqual(['ΟΔΥΣΣΕΥΣ 100%']);
    expect(await found('0%')).toEqual(['ΟΔΥΣΣΕΥΣ 100%']);
    expect(await found('_')).toEqual([]);
    expect(await found('')).toEqual(['Müller & Söhne', 'ΟΔΥΣΣΕΥΣ 100%']);
    const [record] = (await ann.list('notes', {}, { query: { q: 'muller' } })).data;
    expect(Object.keys(record)).toEqual(['id', 'created_at', 'updated_at', 'title', 'text', 'group']);
    expect(await cells('title, "title~folded", "text~folded"')).toEqual([
      ['Müller & Söhne', 'muller & sohne', 'straße'],
      ['ΟΔΥΣΣΕΥΣ 100%', 'οδυσσευσ 100%', 'straße'],
      [null, null, 'forbidde'],
    ]);
  });

  it('judges a write by what it writes', async () => {
    expect(await refusal(ann.create('notes', { text: 'Förbidden!' }))).toBe('forbidden');
    const group = await ann.create('notes', { title: 'zz', text: 'fine' });
    expect(await refusal(ann.update('notes', group.id, { text: 'FORBIDDEN' }))).toBe('not_found');
  });

  it('keeps the copy in step with an update', async () => {
    const [[id] = []] = await cells('id::text');
    await ann.update('notes', String(id), { title: 'Ångström' }, { query: { q: '' } });
    expect(await cells('"title~folded"', `notes WHERE id = '${id}'`)).toEqual([['angstrom']]);
    await ann.update('notes', String(id), { title: null }, { query: {} });
    expect(await cells('"title~folded"', `notes WHERE id = '${id}'`)).toEqual([[null]]);
  });

  it('fills the copies of rows that exist, follows a rename, and drops what is no longer written', async () => {
    await applyMigration(db, schemaOf(schema('string').replaceAll('@record.title matches', '@record.title contains')));
    const columns = `SELECT attname FROM pg_attribute WHERE attrelid = 'notes'::regclass AND attname LIKE 'title%'`;
    expect((await db.rows(raw(columns))).flat()).toEqual(['title']);
    await db.run(
      raw(`INSERT INTO notes (id, title) SELECT gen_random_uuid(), 'Émile ' || n FROM generate_series(1, 2500) AS n`),
    );
    const again = schemaOf(schema(SEARCHED));
    expect((await planMigration(db, again)).destructive).toEqual([]);
    await applyMigration(db, again);
    const [[count] = []] = (await db.rows(
      raw(`SELECT count(*) FROM notes WHERE "title~folded" LIKE 'emile %'`),
    )) as string[][];
    expect(count).toBe('2500');
    expect(await planMigration(db, again)).toEqual({ statements: [], destructive: [], apart: [] });
    const former = schema('{ type: string, search: true, was: title }');
    const renamed = schemaOf(former.replaceAll('@record.title', '@record.head').replace('title:', 'head:'));
    await applyMigration(db, renamed);
    const [[moved] = []] = (await db.rows(
      raw(`SELECT count(*) FROM notes WHERE "head~folded" LIKE 'emile %'`),
    )) as string[][];
    expect(moved).toBe('2500');
    expect(await planMigration(db, renamed)).toEqual({ statements: [], destructive: [], apart: [] });
  });

  it.runIf(kind === 'postgres' && !hasPartitions)('has a trigram index, which a search uses', async () => {
    await db.run(raw('ANALYZE notes'));
    const plan = await db.rows(raw(`EXPLAIN SELECT id FROM notes WHERE "head~folded" LIKE '%mile 1234%'`));
    expect(plan.flat().join('\n')).toContain('notes_head~folded_idx');
  });
});
