// @module-tag long
/** Lists under rules that test related rows by more than values: the keys of these rows come first where they are few. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { sortPathOf } from '../../../src/policy/filters/sort-path.ts';
import { shortestWay } from '../../../src/records/page/page-planner.ts';
import type { ChoosesWay, ChosenWay } from '../../../src/records/page/page-question.ts';
import { BackgroundStatistics } from '../../../src/records/page/table-statistics.ts';
import { createRecords } from '../../../src/records/records.ts';
import { storedTables } from '../../../src/schema/model/stored-names.ts';
import { raw, type Sql, sql } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const CARDS = 3_000;
const RULES = {
  labelled: 'any(@record.labels as l, l.name matches "rare")',
  unlabelled: 'any(@record.labels as l, l.name matches "nothing")',
  frequent: 'any(@record.labels as l, l.name matches "label")',
  quarter: 'any(@record.labels as l, l.rank = 0)',
  sized: '@record.size < 40',
  every: 'any(@record.labels as l, l.name matches "rare" or true)',
  filed: '@record.folder.rank > 247',
  filed_and_open: '@record.folder.rank > 247 and @record.open',
  filed_or_own: '@record.folder.rank > 247 or @record.owner = @request.auth.id',
  filed_or_large: '@record.folder.rank > 247 or @record.size > 390',
};
type Name = keyof typeof RULES;
const NAMES = Object.keys(RULES) as Name[];
const KEYED = NAMES.filter((name) => name !== 'sized' && name !== 'every');

/** The key has another name in one table. */
const idOf = (name: Name): string => (name === 'filed' ? 'no' : 'id');

const SCHEMA = `
roles: [member]
register: { roles: [member] }
limits: { query_time: 60s }
collections:
  labels:
    fields: { name: { type: string, max: 40, search: true }, rank: int }
    access: { view: true }
  folders:
    fields: { rank: { type: int } }
    access: { view: true }
${NAMES.map(
  (name) => `
  ${name}:${idOf(name) === 'id' ? '' : `\n    id: { type: uuid, column: ${idOf(name)} }`}
    fields: { open: { type: bool }, size: { type: int }, due: { type: int, index: true } }
    relations:
      labels: { kind: many_to_many, collection: labels }
      folder: { kind: belongs_to, collection: folders }
      owner: { kind: belongs_to, collection: users }
    access: { view: '${RULES[name]}' }`,
).join('')}
`;

const raised = (kind: string, n: string) => `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

/** A label in 75 is rare; six of 750 folders have a rank over 247; the caller owns a card in 250. */
function fillings(me: string): readonly string[] {
  const labels = `INSERT INTO labels (id, created_at, updated_at, name, "name~folded", rank)
    SELECT ${raised('1', 'n')}, now(), now(), name, name, n % 4
      FROM (SELECT n, CASE WHEN n = 7 THEN 'rare' ELSE 'label ' || n END AS name FROM generate_series(1, 75) AS n) AS made`;
  const folders = `INSERT INTO folders (id, created_at, updated_at, rank)
    SELECT ${raised('2', 'n')}, now(), now(), n % 250 FROM generate_series(1, 750) AS n`;
  const cards = NAMES.flatMap((name) => [
    `INSERT INTO ${name} (${idOf(name)}, created_at, updated_at, open, size, due, folder_id, owner_id)
     SELECT ${raised('3', 'n')}, now(), now(), n % 100 = 0, n * 119 % 400, n % 50, ${raised('2', '1 + n % 750')},
            CASE WHEN n % 250 = 0 THEN '${me}'::uuid END
       FROM generate_series(1, ${CARDS}) AS n`,
    `INSERT INTO "${name}__labels" (record_id, member_id)
     SELECT ${raised('3', 'n')}, ${raised('1', '1 + n % 75')} FROM generate_series(1, ${CARDS}) AS n`,
  ]);
  return [labels, folders, ...cards, 'ANALYZE'];
}

describe.each(KINDS)('the keys of related rows (%s)', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let statistics: BackgroundStatistics;

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA);
    ann = await world.user('ann@example.org');
    for (const text of fillings(ann.id)) await db.run(raw(text));
    statistics = new BackgroundStatistics(db, [...storedTables(world.schema)]);
    await statistics.refresh();
  }, 120_000);
  afterAll(() => db?.close());

  const shown = async (name: Name, choosesWay: ChoosesWay, sort: string | undefined, offset = 0) => {
    const sent: Sql[] = [];
    const watched = watchedReads(db, (statement) => sent.push(statement));
    const statisticsOf = (table: string) => statistics.of(table);
    const records = createRecords(watched, world.schema, { statisticsOf, choosesWay });
    const path = sort === undefined ? undefined : sortPathOf(sort.replace('-', ''), name, world.schema);
    if (typeof path === 'string') throw new Error(path);
    const sorts = path === undefined ? [] : [{ path, descending: sort!.startsWith('-') }];
    const { json } = await records.list(ann.ask(name), { sort: sorts, limit: 20, offset });
    return { json: String(json), statement: sent.at(-1)! };
  };
  const plainly: ChoosesWay = () => undefined;
  /** Tables of more rows alike: those of the test are read as a whole in a millisecond. */
  const LARGER = 80;
  const byStatistics: ChoosesWay = (question) =>
    shortestWay(question, (table) => {
      const known = statistics.of(table);
      return known && { ...known, rows: known.rows * LARGER };
    });

  it.each(KEYED)('%s: lists show the same with and without keys', async (name) => {
    const gathered = (walk: number, keys: number): ChosenWay => ({ kind: 'gathered', by: 'all', walk, keys });
    for (const sort of [undefined, '-due', 'due'])
      for (const offset of [0, 30]) {
        const { json } = await shown(name, plainly, sort, offset);
        for (const way of [gathered(0, 400), gathered(100, 400), gathered(100, 12)]) {
          const keyed = await shown(name, () => way, sort, offset);
          expect(keyed.statement.text).toContain('"keys"');
          expect(keyed.json, `${sort} ${offset}`).toBe(json);
        }
        expect((await shown(name, byStatistics, sort, offset)).json).toBe(json);
      }
  });

  it('statistics find the keys first but where another part of the rule has no index', async () => {
    const first: string[] = [];
    for (const name of NAMES)
      if (/"keys"/.test((await shown(name, byStatistics, undefined)).statement.text)) first.push(name);
    expect(first).toEqual(KEYED.filter((name) => name !== 'filed_or_large'));
  });

  it('a walk that has found nearly half of the page goes on, and all that match are read where it has found less', async () => {
    const readBy = async (walk: number) => {
      const { statement, json } = await shown('sized', () => ({ kind: 'gathered', by: 'all', walk }), undefined);
      const lines = await db.rows(sql`EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ${statement}`);
      const places = lines.flatMap(([line], i) => (/One-Time Filter/.test(line!) ? [i] : []));
      // The further walk, and the rows that are gathered.
      const isRead = places.map(
        (place) => !lines[place + 1]![0]!.includes('never') && !lines[place - 1]![0]!.includes('rows=0'),
      );
      return { json, isRead };
    };
    const { json } = await shown('sized', plainly, undefined);
    for (const [walk, isRead] of [
      [400, [false, false]],
      [200, [true, false]],
      [50, [false, true]],
    ] as const)
      expect(await readBy(walk), `${walk}`).toEqual({ json, isRead });
  });

  it('a short walk that has found nearly half of the page goes on before the keys are read', async () => {
    const keyed: ChoosesWay = () => ({ kind: 'gathered', by: 'all', walk: 400, keys: 5_000 });
    const { statement, json } = await shown('quarter', keyed, undefined);
    expect(json).toBe((await shown('quarter', plainly, undefined)).json);
    const lines = await db.rows(sql`EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ${statement}`);
    const keys = lines.findIndex(([line]) => line!.includes('CTE keys'));
    expect(lines[keys + 1]![0]).toContain('never executed');
  });

  it('a list of no keys ends the list', async () => {
    const { statement } = await shown('unlabelled', byStatistics, undefined);
    const [plan] = await db.rows(sql`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
    const { Plan } = JSON.parse(String(plan![0]))[0];
    expect(Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']).toBeLessThan(500);
  });
});
