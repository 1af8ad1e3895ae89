// @module-tag long
/** Filters whose rows the planner of the database estimates before their page is read. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import type { OpaqueFilter } from '../../../src/records/page/page-question.ts';
import { raw, sql, uuid } from '../../../src/sql.ts';
import { KINDS, openKind, World } from '../../support/store-world.ts';
import { until } from '../../support/until.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const SCHEMA = `
roles: { member: {} }
register: { roles: [member] }
collections:
  notes:
    fields:
      code: { type: string, index: true }
    relations:
      owner: { kind: belongs_to, collection: users, required: true }
      parent: { kind: belongs_to, collection: notes }
      children: { kind: has_many, collection: notes, via: parent }
    access: { view: '@record.owner = @request.auth.id', create: true }
`;
describe.each(KINDS)('estimates of filters (%s)', (kind) => {
  let db: Database;
  let world: World;
  const lanes = new Set<string | undefined>();
  let opaque: OpaqueFilter | undefined;

  beforeAll(async () => {
    db = await openKind(kind);
    const watched = watchedReads(db, ({ text }, options) => {
      if (text.startsWith('EXPLAIN')) lanes.add(options?.lane);
    });
    world = await World.open(watched, SCHEMA, {
      choosesWay: (question) => {
        opaque = question.opaque;
        return undefined;
      },
    });
  });
  afterAll(() => db?.close());

  it('a filter is estimated in the lane of estimates', async () => {
    const ann = await world.user('ann@example.org');
    await db.run(sql`
      INSERT INTO notes (id, code, owner_id)
      SELECT gen_random_uuid(), 'c' || n, ${uuid(ann.id)} FROM generate_series(1, 12000) AS n`);
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
    ['any(children as c, c.code = "c1") or code = "c2"', true],
    ['any(children as c, c.code != "c1") or code = "c2"', false],
    ['code = "c1" and any(children as c, c.code != "c2")', false],
    ['code != "c1"', false],
  ])(
    'the plan of a filter tells if it has short lists of keys in place of look-ups: %s, %j',
    async (text, isOfLists) => {
      const ann = await world.user(`lists.${text.length}@example.org`);
      const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} });
      await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, filter });
      expect(opaque!.isOfLists).toBe(isOfLists);
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
    const ann = await world.user(`${name}@example.org`);
    const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} });
    await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, filter });
    const { hashed, looped = 0, lookedUp } = opaque!;
    const found = looped > 0 ? { looped } : { hashed, lookedUp };
    expect(Object.entries(found).filter(([, cost]) => cost !== undefined)).toEqual([[name, expect.anything()]]);
  });
});
