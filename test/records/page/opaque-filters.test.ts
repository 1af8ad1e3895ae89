// @module-tag long
/** Filters whose rows the planner of the database estimates before their page is read. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { sortPathOf } from '../../../src/policy/filters/sort-path.ts';
import type { ChosenWay, OpaqueFilter } from '../../../src/records/page/page-question.ts';
import { raw, type Sql, sql, uuid } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { until } from '../../support/until.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const SCHEMA = `
roles: { member: {} }
register: { roles: [member] }
collections:
  notes:
    fields:
      code: { type: string, index: true }
      kind: { type: string, index: true }
      rank: int
    relations:
      owner: { kind: belongs_to, collection: users, required: true }
      parent: { kind: belongs_to, collection: notes }
      children: { kind: has_many, collection: notes, via: parent }
      folders: { kind: many_to_many, collection: folders }
      folder: { kind: belongs_to, collection: folders }
    access: { view: '@record.owner = @request.auth.id or @request.query.by = "size" and @record.folder.size = 2', create: true }
  folders:
    fields: { size: int, name: { type: string, index: true } }
    relations: { notes: { kind: has_many, collection: notes, via: folder } }
    access: { view: '@record.name = "x" or any(@record.notes as n, n.kind = "k1")' }
`;
describe.each(KINDS)('estimates of filters (%s)', (kind) => {
  let db: Database;
  let world: World;
  const lanes = new Set<string | undefined>();
  let opaque: OpaqueFilter | undefined;
  let way: ChosenWay;
  let last: Sql | undefined;
  let ann: Caller;

  beforeAll(async () => {
    db = await openKind(kind);
    const watched = watchedReads(db, (statement, options) => {
      if (statement.text.startsWith('EXPLAIN')) lanes.add(options?.lane);
      else last = statement;
    });
    world = await World.open(watched, SCHEMA, {
      choosesWay: (question) => {
        opaque = question.opaque;
        return way;
      },
    });
  });
  afterAll(() => db?.close());

  async function buffersOf(statement: Sql): Promise<number> {
    const [plan] = await db.rows(sql`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
    const { Plan } = JSON.parse(String(plan![0]))[0];
    return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
  }

  it('a filter is estimated in the lane of estimates', async () => {
    ann = await world.user('ann@example.org');
    await db.run(sql`
      INSERT INTO notes (id, code, kind, rank, owner_id)
      SELECT gen_random_uuid(), 'c' || n, 'k' || n % 4, n % 7, ${uuid(ann.id)} FROM generate_series(1, 12000) AS n`);
    await db.run(raw(`UPDATE notes SET parent_id = p.id FROM notes AS p WHERE p.code = notes.code`));
    await db.run(raw('ANALYZE notes'));
    const place = { catalog: world.schema, collection: 'notes', params: {} };
    const { filter } = compileFilter('code contains "c1"', place);
    // Statistics are read beside the first request.
    await until('an estimate', async () => {
      await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, filter });
      return lanes.size > 0;
    });
    expect([...lanes]).toEqual(['estimate']);
  });

  it('the rows that the list rule permits are estimated beside those of the filter', async () => {
    const ben = await world.user('ben@example.org');
    const place = { catalog: world.schema, collection: 'notes', params: {} };
    const { filter } = compileFilter('code != "c1"', place);
    await world.records.list(ben.ask('notes'), { limit: 5, offset: 0, filter });
    expect(opaque!.rows).toBeGreaterThan(10_000);
    expect(opaque!.scanned).toEqual(['notes']);
    expect(opaque!.all.rows).toBeLessThan(10);
  });

  it.each([
    ['any(children as c, c.code = "c1") or code = "c2"', 'short'],
    ['any(children as c, c.code != "c1") or code = "c2"', undefined],
    ['any(children as c, c.kind = "k1") or code = "c2"', 'long'],
    ['any(children as c, c.kind = "k1") or kind contains "k2"', 'long'],
    ['code = "c1" and any(children as c, c.code != "c2")', undefined],
    ['code != "c1"', undefined],
  ])('the plan of a filter tells which lists of keys are in place of look-ups: %s, %j', async (text, lists) => {
    const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} });
    await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, filter });
    expect(opaque!.lists).toBe(lists);
  });

  it.each([
    ['folders contains "01900000-0000-7000-8000-000000000001" or code = "c2"', true],
    ['any(folders as f, f.name = "x") or code = "c2"', false],
  ])(
    'the plan of a filter tells that a test of another record decides for all rows: %s, %j',
    async (text, isAllOrNone) => {
      const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} });
      await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, filter });
      expect(opaque!.isAllOrNone).toBe(isAllOrNone);
    },
  );

  it('a list of as many keys as a filter would look for one by one is read once into a hash table', async () => {
    const { filter } = compileFilter('any(children as c, c.kind = "k1") or code = "c2"', {
      catalog: world.schema,
      collection: 'notes',
      params: {},
    });
    way = { kind: 'gathered', by: 'filters' };
    const { json } = await world.records.list(ann.ask('notes'), { limit: 5_000, offset: 0, filter });
    way = undefined;
    expect(JSON.parse(String(json))).toHaveLength(3_001);
    expect(await buffersOf(last!)).toBeLessThan(2_000);
  });

  it.each(['filter', 'where of a measure'])(
    'an aggregate compares no record with each key of a long list in its %s',
    async (place) => {
      const { filter } = compileFilter('any(children as c, c.kind = "k1") or kind contains "k2"', {
        catalog: world.schema,
        collection: 'notes',
        params: {},
      });
      const of = { kind: 'count' } as const;
      const asked =
        place === 'filter'
          ? { filter, measures: [{ name: 'n', of }] }
          : { measures: [{ name: 'n', of, where: filter }] };
      const { json } = await world.records.aggregate(ann.ask('notes'), { groups: [], sort: [], limit: 1, ...asked });
      expect(JSON.parse(String(json))).toEqual([{ n: 6_000 }]);
      expect(last!.text).toContain('count(*)');
      expect(last!.text).not.toContain('ANY(ARRAY(');
    },
  );

  it('related rows that the database keeps in memory are not looked up one by one', async () => {
    await db.run(raw('INSERT INTO folders (id, size) SELECT gen_random_uuid(), n FROM generate_series(1, 40000) AS n'));
    await db.run(raw('UPDATE notes SET folder_id = f.id FROM folders AS f WHERE f.size = length(notes.code)'));
    // A scan of the table passes the pages of former versions, until it meets a row.
    await db.run(raw('VACUUM FULL notes'));
    await db.run(raw('ANALYZE'));
    const { filter } = compileFilter('folder.size != 3', { catalog: world.schema, collection: 'notes', params: {} });
    await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, filter });
    expect(opaque).toMatchObject({ lookUps: [{ table: 'folders' }], lookedUp: undefined });
  });

  it('a page in an order without an index has no long list of keys in the rule of related records', async () => {
    const { filter } = compileFilter('folder.size > 4', { catalog: world.schema, collection: 'notes', params: {} });
    const path = sortPathOf('rank', 'notes', world.schema);
    if (typeof path === 'string') throw new Error(path);
    const sort = [{ path, descending: false }];
    const exact = [
      { kind: 'field', field: world.schema.collections.get('notes')!.fields.get('code')!, value: 'c10001' },
    ] as const;
    const { json } = await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, exact, filter, sort });
    expect(JSON.parse(String(json))).toHaveLength(1);
    expect(await buffersOf(last!)).toBeLessThan(60);
  });

  it.each(['rule', 'filter'])(
    'the walk after that of look-ups reads the related table of the %s once',
    async (place) => {
      // Nine notes have such a folder, so that the page ends in the middle of the table.
      const { filter } = compileFilter('folder.size = 2', { catalog: world.schema, collection: 'notes', params: {} });
      const cat = await world.user(`${place}@example.org`);
      const asker = place === 'filter' ? ann.ask('notes') : cat.ask('notes', { query: { by: 'size' } });
      const asked = place === 'filter' ? { filter } : {};
      const pageOf = async (walks: { readonly walk: number; readonly longWalk?: number }) => {
        way = { kind: 'gathered', by: 'all', ...walks };
        const { json } = await world.records.list(asker, { limit: 5, offset: 0, ...asked });
        way = undefined;
        return { json: String(json), buffers: await buffersOf(last!) };
      };
      const [lookedUp, kept] = [await pageOf({ walk: 12_800 }), await pageOf({ walk: 12, longWalk: 12_800 })];
      expect(JSON.parse(kept.json)).toHaveLength(5);
      expect(kept.json).toBe(lookedUp.json);
      expect(kept.buffers).toBeLessThan(lookedUp.buffers / 2);
    },
  );

  it.each([
    ['related rows that it keeps in memory', 'any(children as c, c.code != "c1") or code = "c2"', 'hashed'],
    [
      'related rows that it looks up beside those in memory',
      'any(children as c, c.code != "c1") and any(children as c, c.code != code) or code = "c2"',
      'looped',
    ],
    ['related rows that it looks up one by one', 'code = "c1" and any(children as c, c.code != "c2")', 'lookedUp'],
  ])('the plan of a filter tells of %s', async (_, text, name) => {
    const ben = await world.user(`${name}@example.org`);
    const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} });
    await world.records.list(ben.ask('notes'), { limit: 5, offset: 0, filter });
    const { hashed, looped = 0, lookedUp } = opaque!;
    const found = looped > 0 ? { looped } : { hashed, lookedUp };
    expect(Object.entries(found).filter(([, cost]) => cost !== undefined)).toEqual([[name, expect.anything()]]);
  });
});
