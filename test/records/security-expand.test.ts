// @module-tag partitions
/** S6: answers and work are bounded. An expanded to-many relation shows 100 records, and the database reads one more. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cells, Database } from '../../src/database/contract.ts';
import { param, raw, sql } from '../../src/sql.ts';
import { hasPartitions } from '../support/cluster/partitioned.ts';
import { type Caller, type Json, KINDS, openKind, World } from '../support/store-world.ts';

const SCHEMA = `
roles: { admin: {}, member: {} }
register: { roles: [member] }
collections:
  boxes:
    fields: { name: { type: string, required: true } }
    relations:
      owner:  { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      things: { kind: has_many, collection: things, via: box }
      tags:   { kind: many_to_many, collection: things }
    access: { list: true, read: true, create: true, update: true, delete: true }
  things:
    fields: { number: { type: int, required: true }, hidden: { type: bool, required: true, default: false } }
    relations: { box: { kind: belongs_to, collection: boxes, required: true } }
    access: { list: true, read: '@record.hidden = false', create: true }
`;

/** The identifier of the thing with this number, in the order of their numbers. */
const idOf = (number: number): string => `0190abcd-0000-7000-8000-${String(number).padStart(12, '0')}`;
const range = (count: number, from = 0): readonly number[] => Array.from({ length: count }, (_, i) => from + i);
const numbers = (things: readonly Json[]): readonly number[] => things.map(({ number }) => number);

/** A database that counts the rows that each statement gives. */
function counted(db: Database, counts: number[]): Database {
  const rows = async (statement: Parameters<Database['rows']>[0]): Promise<readonly Cells[]> => {
    const found = await db.rows(statement);
    counts.push(found.length);
    return found;
  };
  return new Proxy(db, {
    get(target, key) {
      if (key === 'rows') return rows;
      if (key === 'replicaFor') return () => ({ rows, run: target.run });
      return Reflect.get(target, key);
    },
  });
}

describe.each(KINDS)('S6: expand on %s', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  const counts: number[] = [];
  /** The number of things in each box and linked to it, by name; the `hidden` ones come first. */
  const boxes = new Map<string, string>();
  let next = 0;

  const fill = async (name: string, { shown, hidden }: { readonly shown: number; readonly hidden: number }) => {
    const { id } = await ann.create('boxes', { name });
    boxes.set(name, id);
    const all = range(shown + hidden, next);
    next += all.length;
    await db.run(sql`
      INSERT INTO things (id, number, hidden, box_id)
      SELECT * FROM unnest(${param('uuid[]', all.map(idOf))}, ${param('int8[]', all)},
                           ${param(
                             'bool[]',
                             all.map((_, i) => i < hidden),
                           )}) AS thing
       CROSS JOIN (SELECT ${param('uuid', id)}) AS box`);
    await db.run(sql`
      INSERT INTO boxes__tags SELECT box_id, id FROM things WHERE box_id = ${param('uuid', id)}`);
    return { id, shown: all.slice(hidden) };
  };

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(counted(db, counts), SCHEMA);
    ann = await world.user('ann@example.org');
  });
  afterAll(() => db?.close());

  it('an expand shows the first 100 readable records, in id order, and names the cut relations', async () => {
    const { id, shown } = await fill('crowded', { shown: 150, hidden: 120 });
    const record = await ann.read('boxes', id, ['tags', 'owner', 'things']);
    expect(numbers(record.expand.things)).toEqual(shown.slice(0, 100));
    expect(numbers(record.expand.tags)).toEqual(shown.slice(0, 100));
    expect(record.expand_more).toEqual(['tags', 'things']);
    expect(Object.keys(record).slice(-2)).toEqual(['expand', 'expand_more']);
  });

  it('an expand cuts nothing at exactly 100: hidden records do not count', async () => {
    const { id, shown } = await fill('full', { shown: 100, hidden: 60 });
    const record = await ann.read('boxes', id, ['things', 'tags']);
    expect(numbers(record.expand.things)).toEqual(shown);
    expect(numbers(record.expand.tags)).toEqual(shown);
    expect('expand_more' in record).toBe(false);
  });

  it('an expand names only the cut relations, of each record of a page', async () => {
    const { id } = await fill('one over', { shown: 101, hidden: 0 });
    await db.run(
      sql`DELETE FROM boxes__tags WHERE record_id = ${param('uuid', id)} AND member_id <> ${param('uuid', idOf(next - 1))}`,
    );
    await fill('empty', { shown: 0, hidden: 3 });
    const { data } = await ann.list('boxes', {}, { expand: ['tags', 'things'] });
    const seen = data.map(({ name, expand, expand_more: more }: Json) => [
      name,
      expand.things.length,
      expand.tags.length,
      more,
    ]);
    expect(seen).toEqual([
      ['crowded', 100, 100, ['tags', 'things']],
      ['full', 100, 100, undefined],
      ['one over', 100, 1, ['things']],
      ['empty', 0, 0, undefined],
    ]);
  });

  it('an expand behaves the same in the responses to a create and to an update', async () => {
    const tags = { set: range(101, 120).map(idOf) };
    const made = await ann.create('boxes', { name: 'new', tags }, { expand: ['tags'] });
    expect([made.expand.tags.length, made.expand_more]).toEqual([100, ['tags']]);
    const one = { remove: [made.expand.tags[0].id] };
    const changed = await ann.update('boxes', made.id, { tags: one }, { expand: ['tags'] });
    expect([changed.expand.tags.length, changed.expand_more]).toEqual([100, undefined]);
  });

  it('an expand reads at most 101 related rows per record', async () => {
    const { id } = await fill('huge', { shown: 5_000, hidden: 0 });
    counts.length = 0;
    await ann.read('boxes', id, ['things', 'tags']);
    expect(counts).toEqual([1, 101, 101]);
    counts.length = 0;
    await ann.list('boxes', {}, { expand: ['things', 'tags'] });
    expect(Math.max(...counts)).toBeLessThanOrEqual(101 * boxes.size + 101);
  });

  it.skipIf(kind === 'embedded' || hasPartitions)(
    'an expand reads rows in the order of an index and stops: no full scan, no full sort',
    async () => {
      await db.run(raw('ANALYZE things'));
      await db.run(raw('ANALYZE boxes__tags'));
      const plans = await planned(world, boxes.get('huge')!);
      const scans = plans.map((plan) =>
        /using (things_box_id_id_idx|boxes__tags_pkey) .*actual rows=(\d+)/.exec(plan)?.slice(1),
      );
      expect(new Map(scans as [string, string][])).toEqual(
        new Map([
          ['boxes__tags_pkey', '101'],
          ['things_box_id_id_idx', '101'],
        ]),
      );
    },
  );

  /** The work of the statements that expand a box, by EXPLAIN ANALYZE. */
  async function planned(of: World, id: string): Promise<readonly string[]> {
    const plans: string[] = [];
    const watching = new Proxy(of.db, {
      get(target, key) {
        if (key !== 'replicaFor') return Reflect.get(target, key);
        return () => ({
          async rows(statement: Parameters<Database['rows']>[0]) {
            if (statement.text.includes('LATERAL')) {
              const explained = await db.rows(sql`EXPLAIN (ANALYZE, TIMING OFF) ${statement}`, { lane: 'slow' });
              plans.push(explained.map(([line]) => line).join('\n'));
            }
            return db.rows(statement);
          },
        });
      },
    });
    const own = await World.open(watching, SCHEMA);
    const reader = await own.user('reader@example.org');
    await reader.read('boxes', id, ['things', 'tags']);
    return plans;
  }
});
