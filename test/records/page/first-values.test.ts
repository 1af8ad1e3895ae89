// @module-tag long
/** The first page of a column whose first values are few: statistics of each type bound a walk, old ones too. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { sortPathOf } from '../../../src/policy/filters/sort-path.ts';
import { BackgroundStatistics } from '../../../src/records/page/table-statistics.ts';
import { createRecords } from '../../../src/records/records.ts';
import { raw, sql } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const ROWS = 20_000;
const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  things:
    fields:
      state: { type: string, max: 20, index: true }
      level: { type: int, index: true }
      share: { type: float, index: true }
      price: { type: decimal, precision: 8, scale: 2, index: true }
      open: { type: bool, index: true }
      day: { type: date, index: true }
      due: { type: datetime, index: true }
    access: { view: true }
  posts:
    fields: { shown_at: { type: datetime, index: true } }
    access: { view: '@record.shown_at <= "2026-01-03T00:00:00.000Z"' }
`;

/** In each column, one record in 400 has the lowest value, another one the highest; a tenth has none, and all others the middle one. */
const filling = (low: string, middle: string, high: string): string =>
  `CASE WHEN n % 400 = 0 THEN ${low} WHEN n % 400 = 200 THEN ${high} WHEN n % 10 = 1 THEN NULL ELSE ${middle} END`;
const FIELDS = {
  state: filling(`'a'`, `'m'`, `'ß'`),
  level: filling('-5', '0', '12'),
  share: filling('-0.5', '1e-7', '1e20'),
  price: filling('-1.50', '0', '100000.25'),
  open: filling('false', 'true', 'NULL'),
  day: filling(`'0001-02-03'::date`, `'2026-01-01'::date`, `'9999-12-31'::date`),
  due: filling(`'1969-12-31T23:59:59.5Z'::timestamptz`, `'2026-01-01Z'::timestamptz`, `'2126-01-01Z'::timestamptz`),
};

describe.each(KINDS)('the first values of an order (%s)', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA);
    ann = await world.user('ann@example.org');
    const columns = Object.keys(FIELDS).map(
      (name) => `"${world.schema.collections.get('things')!.fields.get(name)!.column}"`,
    );
    await db.run(sql`
      INSERT INTO things (id, created_at, updated_at, ${raw(columns.join(', '))})
      SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), ${raw(Object.values(FIELDS).join(', '))}
        FROM generate_series(1, ${raw(String(ROWS))}) AS n`);
    await db.run(sql`ANALYZE things`);
  }, 60_000);
  afterAll(() => db?.close());

  const reader = async () => {
    const texts: string[] = [];
    const statistics = new BackgroundStatistics(db, ['things']);
    await statistics.refresh();
    const watched = watchedReads(db, ({ text }) => texts.push(text));
    return { texts, records: createRecords(watched, world.schema, { statisticsOf: (table) => statistics.of(table) }) };
  };

  it.each(Object.keys(FIELDS))('%s: the page is the same, and the walk ends with them', async (name) => {
    const path = sortPathOf(name, 'things', world.schema);
    if (typeof path === 'string') throw new Error(path);
    const { texts, records } = await reader();
    const plain = createRecords(db, world.schema, { choosesWay: () => undefined });
    let bounded = 0;
    for (const descending of [false, true]) {
      for (const [limit, offset] of [
        [20, 0],
        [60, 5],
        [30, 200],
      ] as const) {
        const request = { sort: [{ path, descending }], limit, offset };
        const shown = String((await records.list(ann.ask('things'), request)).json);
        if (/"walked"/.test(texts.at(-1)!)) bounded++;
        expect(shown).toBe(String((await plain.list(ann.ask('things'), request)).json));
      }
    }
    expect(bounded).toBeGreaterThan(0);
  });

  it('a filter on the column of the order may leave none of them, so that no walk ends there', async () => {
    const path = sortPathOf('level', 'things', world.schema);
    if (typeof path === 'string') throw new Error(path);
    let asked = '';
    const begins: string[] = [];
    const records = createRecords(db, world.schema, {
      choosesWay: ({ order }) => {
        if (order?.isFirstPage === true) begins.push(asked);
        return undefined;
      },
    });
    for (asked of ['level < 12', 'share is null']) {
      const { filter } = compileFilter(asked, { catalog: world.schema, collection: 'things', params: {} });
      const request = { sort: [{ path, descending: true }], limit: 20, offset: 0, filter };
      await records.list(ann.ask('things'), request);
    }
    expect(begins).toEqual(['share is null']);
  });

  it('a walk begins at the value that the rule gives the column of the order', async () => {
    await db.run(sql`
      INSERT INTO posts (id, created_at, updated_at, shown_at)
      SELECT ('01900001-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), '2026-01-06Z'::timestamptz - n * interval '1 day'
        FROM generate_series(1, 40) AS n`);
    const path = sortPathOf('shown_at', 'posts', world.schema);
    if (typeof path === 'string') throw new Error(path);
    const texts: string[] = [];
    const records = createRecords(
      watchedReads(db, ({ text }) => texts.push(text)),
      world.schema,
      {
        choosesWay: () => ({ kind: 'gathered', by: 'all', walk: 10 }),
      },
    );
    const request = { sort: [{ path, descending: true }], limit: 5, offset: 0 };
    const { data } = JSON.parse(`{"data":${(await records.list(ann.ask('posts'), request)).json}}`);
    expect(data.map(({ id }: { readonly id: string }) => Number(`0x${id.slice(-12)}`))).toEqual([3, 4, 5, 6, 7]);
    expect(texts.at(-1)).toMatch(/IS NOT NULL\s+AND "t"\."shown_at" <= \S+\s+ORDER BY "_k0" DESC/);
  });

  it('records of a value that statistics lack come first', async () => {
    const path = sortPathOf('state', 'things', world.schema);
    if (typeof path === 'string') throw new Error(path);
    const { texts, records } = await reader();
    await db.run(sql`UPDATE things SET state = 'zz' WHERE id = '01900000-0000-7000-8000-000000000007'`);
    await db.run(sql`UPDATE things SET state = 'ßß' WHERE id = '01900000-0000-7000-8000-000000000008'`);
    const request = { sort: [{ path, descending: true }], limit: 3, offset: 0 };
    const shown = JSON.parse(String((await records.list(ann.ask('things'), request)).json));
    expect(texts.at(-1)).toContain(' BETWEEN ');
    expect(shown.map(({ state }: { readonly state: string }) => state)).toEqual(['ßß', 'ß', 'ß']);
  });
});
