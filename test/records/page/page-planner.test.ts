// @module-tag long
/** How the pages of lists are found: what is chosen when, what the statements are, and what is known of the tables. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import type { Branch, LookUp } from '../../../src/policy/branch.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { sortPathOf } from '../../../src/policy/filters/sort-path.ts';
import { areFewLookUps } from '../../../src/records/page/page-costs.ts';
import type { ExactFilter, ListRequest } from '../../../src/records/page/page-plan.ts';
import { PagePlanner, shortestWay } from '../../../src/records/page/page-planner.ts';
import type { ChoosesWay, ColumnOrder, OpaqueFilter, PageQuestion } from '../../../src/records/page/page-question.ts';
import { areManyRows, estimatedKeys, joinsManyRows, shareOfKey } from '../../../src/records/page/row-shares.ts';
import {
  BackgroundStatistics,
  type ColumnStatistics,
  type TableStatistics,
} from '../../../src/records/page/table-statistics.ts';
import { createRecords } from '../../../src/records/records.ts';
import { param, raw, sql } from '../../../src/sql.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

// ---------------------------------------------------------------- what is chosen

const column = (distinct: number, common: Readonly<Record<string, number>> = {}, clustering = 0): ColumnStatistics => ({
  distinct,
  nullShare: 0,
  common: new Map(Object.entries(common)),
  commonShare: Object.values(common).reduce((sum, share) => sum + share, 0),
  repeated: Object.values(common).reduce((sum, share) => sum + share * share, 0),
  clustering,
});

function tables(rows: number): ReadonlyMap<string, TableStatistics> {
  const documents = new Map([
    ['owner_id', column(rows / 100)],
    ['team_id', column(1_000)],
    ['status', column(3, { published: 0.65, draft: 0.34, odd: 0.01 })],
    ['stage', column(2, { old: 0.5, new: 0.5 }, 1)],
    ['slug', column(rows)],
    ['body', column(rows)],
    ['parent_id', column(rows)],
  ]);
  const memberships = new Map([['user_id', column(1_000, { busy: 0.5 })]]);
  const parents = new Map([['status', column(4, { most: 0.9, many: 0.3, some: 0.0275, rare: 0.0001 })]]);
  const links = new Map([['member_id', column(500, { frequent: 0.5 })]]);
  return new Map([
    ['documents', { rows, columns: documents }],
    ['memberships', { rows: 5_000, columns: memberships }],
    ['documents__tags', { rows, columns: links }],
    ['parents', { rows, columns: parents }],
  ]);
}

/** A row that a filter looks up by its id. */
const TARGET = { table: 'parents', column: 'id', isId: true, within: [] } as const;

const one = (name: string, value: string, others = 0): Branch => ({
  column: name,
  isId: false,
  isOneRange: true,
  range: raw('TRUE'),
  keys: undefined,
  where: raw('TRUE'),
  tests: [{ column: name, values: [value] }],
  others,
  count: undefined,
  alternatives: [],
  place: 0,
});
const byKeys = (column: string, count: Branch['count']): Branch => ({
  column,
  isId: column === 'id',
  isOneRange: false,
  range: undefined,
  where: raw('TRUE'),
  keys: raw('SELECT'),
  tests: [],
  others: 0,
  count,
  alternatives: [],
  place: 0,
});
const teamsOf = (user: string): Branch =>
  byKeys('team_id', {
    kind: 'rows',
    table: 'memberships',
    share: { kind: 'values', column: 'user_id', values: [user] },
    areIds: false,
  });
const listOf = (name: string, values: readonly string[]): Branch => ({
  ...byKeys(name, { kind: 'list', count: values.length }),
  tests: [{ column: name, values }],
});
const BY_ID = { column: 'id', isId: true } as const;
const orderOf = (column: string) => ({ column, descending: false, isWhole: true, isThenById: true, isFirstPage: true });
const ofParents = (status: string): Branch =>
  byKeys('parent_id', {
    kind: 'rows',
    table: 'parents',
    share: { kind: 'values', column: 'status', values: [status] },
    areIds: true,
  });

/** The database's expectations of a filter under an open rule. */
const ofFilter = (filter: Omit<OpaqueFilter, 'all'>): OpaqueFilter => ({ ...filter, all: filter });

interface Case {
  readonly says: string;
  readonly branches: readonly Branch[];
  readonly filters?: PageQuestion['filters'];
  readonly links?: PageQuestion['links'];
  readonly rows?: number;
  readonly most?: number;
  readonly chosen: 'branches' | 'range' | 'gathered' | 'plain';
}
const MINE = one('owner_id', 'me');
const MANY = { kind: 'values', column: 'status', values: ['many'] } as const;
const linksTo = (tag: string) => ({ table: 'documents__tags', column: 'member_id', values: [tag] });
const CASES: readonly Case[] = [
  { says: 'what most rows match is met soon', branches: [MINE, one('status', 'published')], chosen: 'plain' },
  { says: 'also in a small table', branches: [MINE, one('status', 'published')], rows: 1_000, chosen: 'plain' },
  { says: 'what few rows match is not', branches: [MINE, one('status', 'odd')], chosen: 'branches' },
  { says: 'nor the documents of some teams', branches: [MINE, teamsOf('me')], chosen: 'branches' },
  { says: 'nor in a small table', branches: [MINE, teamsOf('me')], rows: 1_000, chosen: 'branches' },
  {
    says: 'a caller who is in half of all teams may find no documents by walking',
    branches: [MINE, teamsOf('busy')],
    chosen: 'gathered',
  },
  {
    says: 'one unselective branch is enough to walk',
    branches: [teamsOf('me'), one('status', 'published')],
    chosen: 'plain',
  },
  { says: 'elements add up', branches: [listOf('status', ['draft', 'odd'])], chosen: 'plain' },
  { says: 'few elements do not', branches: [listOf('owner_id', ['a', 'b', 'c'])], chosen: 'branches' },
  {
    says: 'what else a branch asks makes it rarer',
    branches: [MINE, one('status', 'published', 3)],
    chosen: 'branches',
  },
  {
    says: 'what lies together beside it does not matter where most rows match',
    branches: [one('stage', 'old'), one('status', 'published')],
    chosen: 'plain',
  },
  { says: 'half of the rows may all lie at the end', branches: [MINE, one('stage', 'new')], chosen: 'branches' },
  {
    says: 'a filter that an index serves finds few rows by itself',
    branches: [MINE, teamsOf('me')],
    filters: [{ column: 'slug', values: ['x'] }],
    chosen: 'range',
  },
  {
    says: 'a filter that none serves makes the walk longer',
    branches: [MINE, one('status', 'published')],
    filters: [{ column: 'rare', values: ['x'] }],
    chosen: 'branches',
  },
  {
    says: 'few links find few rows by themselves',
    branches: [MINE, teamsOf('me')],
    links: linksTo('rare'),
    chosen: 'plain',
  },
  {
    says: 'few links are fewer than the rows of one value',
    branches: [one('status', 'odd', 1)],
    links: linksTo('rare'),
    chosen: 'plain',
  },
  {
    says: 'many links are looked up for the rows of short branches',
    branches: [MINE, teamsOf('me')],
    links: linksTo('frequent'),
    chosen: 'branches',
  },
  {
    says: 'many links of rows that most match fill the page soon',
    branches: [MINE, one('status', 'published')],
    links: linksTo('frequent'),
    chosen: 'plain',
  },
  {
    says: 'a far page of many branches holds about all that match',
    branches: [MINE, teamsOf('me')],
    most: 9_000,
    chosen: 'gathered',
  },
];

const QUESTION = {
  table: 'documents',
  filters: [],
  indexed: new Set(['id', 'owner_id', 'team_id', 'status', 'stage', 'slug']),
  most: 21,
  collection: {},
  isById: true,
  lookUps: [],
  isOpen: false,
};

describe('the way to a page', () => {
  it.each(CASES)('$says: $chosen', ({ branches, filters = [], links, rows = 100_000, most = 21, chosen }) => {
    const known = tables(rows);
    const way = shortestWay({ ...QUESTION, branches, filters, links, most }, (table) => known.get(table));
    expect(way?.kind ?? 'plain').toBe(chosen);
  });

  it.each([
    ['draft', 'me', ['team_id']],
    ['odd', 'busy', ['status']],
  ])('in a branch of status %s and the teams of %s is by %j', (status, user, columns) => {
    const byKeys = { ...teamsOf(user), tests: [{ column: 'status', values: [status] }] };
    const branch = { ...one('status', status, 1), alternatives: [byKeys] };
    const known = tables(100_000);
    const way = shortestWay({ ...QUESTION, branches: [branch, one('owner_id', 'x')] }, (table) => known.get(table));
    const chosen = way?.kind === 'branches' ? way.branches.slice(0, 1) : [];
    expect(chosen.map(({ column: of }) => of)).toEqual(columns);
  });

  it.each([
    ['few of the related rows permit a record: their keys', 'rare', { kind: 'branches' }],
    ['some do: a walk, then their keys', 'some', { kind: 'branches', walk: 800 }],
    ['many do: a walk, then all', 'many', { kind: 'gathered', by: 'all', walk: 1_600 }],
    ['nearly all do: a walk, then all', 'most', { kind: 'gathered', by: 'all', walk: 1_600 }],
  ])('looks up related rows: %s', (_, status, expected) => {
    const known = tables(100_000);
    const branch = ofParents(status);
    const lookUps = [{ table: 'parents', column: 'id', isId: true, within: [] } as const];
    const way = shortestWay({ ...QUESTION, branches: [branch], lookUps }, (table) => known.get(table));
    expect(way).toEqual({ ...expected, ...(expected.kind === 'branches' && { branches: [branch] }) });
    const unknown = shortestWay({ ...QUESTION, branches: [branch], lookUps }, () => undefined);
    expect(unknown).toEqual({ kind: 'branches', branches: [branch], walk: 1_000 });
  });

  it('branches of known columns come without a walk where that is expected to be much longer', () => {
    const known = tables(100_000);
    const filters = [{ column: 'status', values: ['draft'] }];
    const walkBefore = (others: number) => {
      const branches = [one('owner_id', 'me', others), teamsOf('me')];
      const way = shortestWay({ ...QUESTION, branches, filters }, (table) => known.get(table));
      return way?.kind === 'branches' ? (way.walk ?? 0) : undefined;
    };
    expect([walkBefore(0), walkBefore(1)]).toEqual([0, 400]);
  });

  it('the range of an indexed filter gives the page where the rule permits all records or has no branches', () => {
    const [slug, stage] = [
      { column: 'slug', values: ['x'] },
      { column: 'stage', values: ['new'] },
    ];
    const known = tables(100_000);
    const wayTo = (filters: PageQuestion['filters'], isOpen: boolean) =>
      shortestWay({ ...QUESTION, branches: undefined, filters, isOpen }, (table) => known.get(table));
    for (const isOpen of [true, false]) {
      expect(wayTo([stage, slug], isOpen)).toEqual({ kind: 'range', of: slug });
      for (const filter of [
        { ...slug, column: 'body' },
        { ...slug, isInside: true },
        { ...slug, values: ['x', 'y'] },
      ])
        expect(wayTo([filter], isOpen)).toMatchObject({ kind: 'gathered', by: 'all' });
    }
    const question = { ...QUESTION, branches: undefined, filters: [stage, slug] };
    expect(shortestWay(question, () => undefined)).toEqual({ kind: 'range', of: stage });
  });

  it('a page in another order than by id begins with the rows of a filter that finds few', () => {
    const known = tables(100_000);
    const wayTo = (name: string, value: string, column?: string) => {
      const order = column === undefined ? undefined : orderOf(column);
      const filters = [{ column: name, values: [value] }];
      const question = { ...QUESTION, branches: undefined, isById: false, isOpen: true, filters, order };
      return shortestWay(question, (table) => known.get(table));
    };
    expect(wayTo('status', 'odd')).toEqual({ kind: 'gathered', by: 'filters' });
    expect(wayTo('status', 'draft')).toBeUndefined();
    expect(wayTo('slug', 'x', 'stage')).toEqual({ kind: 'gathered', by: 'filters' });
    // A walk in the order of another index is expected to come to its end, and is the shorter for it.
    expect(wayTo('body', 'x', 'stage')).toEqual({ kind: 'gathered', by: 'all', walk: 6_400 });
    // It may come to its end, because the values of two columns may go together.
    expect(wayTo('status', 'draft', 'stage')).toEqual({ kind: 'gathered', by: 'all', walk: 6_400 });
  });

  it('a walk in another order than by id is bounded, unless the rows of the rule are spread over this order', () => {
    const known = tables(100_000);
    const wayTo = (rule: string, column: string) => {
      const order = orderOf(column);
      const question = { ...QUESTION, branches: undefined, unordered: [one('status', rule)], isById: false, order };
      return shortestWay(question, (table) => known.get(table));
    };
    expect(wayTo('published', 'stage')).toBeUndefined();
    // Each row of an order that is not that of the table is on a page of its own.
    expect(wayTo('published', 'slug')).toEqual({ kind: 'gathered', by: 'all', walk: 3_200 });
    expect(wayTo('x', 'slug')).toEqual({ kind: 'gathered', by: 'all' });
  });

  it('the range of a value is bounded where other tests decide which of its many rows match', () => {
    const known = tables(100_000);
    const wayTo = (question: Partial<PageQuestion>) =>
      shortestWay({ ...QUESTION, branches: undefined, ...question }, (table) => known.get(table));
    const [draft, mine] = [
      { ...one('status', 'draft'), tests: [{ column: 'status', values: ['draft'] }] },
      one('owner_id', 'x', 1),
    ];
    expect(wayTo({ branches: [draft] })).toEqual({ kind: 'range', of: draft });
    const narrowed = { ...draft, others: 1 };
    expect(wayTo({ branches: [narrowed] })).toEqual({ kind: 'gathered', by: 'all', walk: 6_400, within: narrowed });
    // The rows of a rare value are read sooner than all that match.
    expect(wayTo({ branches: [mine] })).toEqual({ kind: 'range', of: mine });
    const filters = [{ column: 'stage', values: ['old'] }];
    const [of] = filters;
    expect(wayTo({ filters, isOpen: true })).toEqual({ kind: 'range', of });
    expect(wayTo({ filters })).toEqual({ kind: 'gathered', by: 'all', walk: 6_400, within: of });
  });

  it('begins with the rows of a search or of a relation test, if the database expects few', () => {
    const known = tables(100_000);
    const wayTo = (rows: number, kind: 'search' | 'related' | 'mixed') => {
      const opaque = ofFilter({ rows, cost: rows, kind, lookUps: [TARGET] });
      const question = { ...QUESTION, branches: [MINE, one('status', 'odd')], opaque };
      return shortestWay(question, (table) => known.get(table));
    };
    expect(wayTo(10, 'search')).toEqual({ kind: 'gathered', by: 'filters' });
    expect(wayTo(10, 'related')).toEqual({ kind: 'gathered', by: 'keys', keys: 50 });
    expect(wayTo(10, 'mixed')).toEqual({ kind: 'gathered', by: 'filters' });
    const keysBy = (by: string) => {
      const lookUps = [{ ...TARGET, by }];
      const opaque = ofFilter({ rows: 40_000, cost: 60_000, kind: 'related', lookUps });
      const way = shortestWay({ ...QUESTION, branches: undefined, isOpen: true, opaque }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.keys : undefined;
    };
    // A hundred documents have each owner, and one has each parent.
    expect([keysBy('owner_id'), keysBy('parent_id'), keysBy('id')]).toEqual([50, 1_600, 1_600]);
    expect(wayTo(50_000, 'search')?.kind).toBe('branches');
    // The related rows may be many where another filter leaves few.
    const opaque = ofFilter({ rows: 1, cost: 1_000, kind: 'related', lookUps: [TARGET] });
    const narrowed = { ...QUESTION, branches: undefined, filters: [{ column: 'body', values: ['x'] }], opaque };
    expect(shortestWay(narrowed, (table) => known.get(table))).toEqual({ kind: 'gathered', by: 'filters' });
  });

  it('few rows of a filter are in order before a rule looks up others for them', () => {
    const known = tables(100_000);
    const wayTo = (rows: number, lookUps: PageQuestion['lookUps'], order?: PageQuestion['order']) => {
      const all = { rows, cost: 1_000_000 };
      const opaque = { ...ofFilter({ rows, cost: 10_000, kind: 'mixed', lookUps: [] }), all };
      const isById = order === undefined;
      const question = { ...QUESTION, branches: undefined, isById, order, lookUps, opaque };
      const way = shortestWay(question, (table) => known.get(table));
      return way?.kind === 'gathered' && way.isOrdered === true;
    };
    const byBody = orderOf('body');
    expect([wayTo(1_000, [TARGET]), wayTo(1_000, [TARGET], byBody)]).toEqual([true, true]);
    expect([wayTo(1_000, []), wayTo(50_000, [TARGET])]).toEqual([false, false]);
  });

  it('a list of keys is the longer the more the other ways cost', () => {
    const known = tables(100_000);
    const keysFor = (cost: number) => {
      const opaque = ofFilter({ rows: 10, cost, kind: 'related', lookUps: [TARGET] });
      const way = shortestWay({ ...QUESTION, branches: undefined, opaque }, (table) => known.get(table));
      return way?.kind === 'gathered' && way.by === 'keys' ? way.keys : undefined;
    };
    expect([10, 10_000, 1_000_000_000].map(keysFor)).toEqual([50, 400, 51_200]);
  });

  it('a short walk comes before the few rows that the database expects of filter and rule together', () => {
    const known = tables(100_000);
    const wayFor = (rows: number) => {
      const opaque = {
        ...ofFilter({ rows: 30_000, cost: 10_000, kind: 'own', lookUps: [] }),
        all: { rows, cost: rows },
      };
      return shortestWay({ ...QUESTION, branches: undefined, opaque }, (table) => known.get(table));
    };
    expect(wayFor(1)).toEqual({ kind: 'gathered', by: 'all', walk: 50 });
    expect(wayFor(3_000)).toEqual({ kind: 'gathered', by: 'all', walk: 1_600 });
  });

  it('a walk is shorter before the rows of a filter that lie together', () => {
    const documents = tables(100_000).get('documents')!;
    const walkBefore = (clustering: number) => {
      const columns = new Map([...documents.columns, ['slug', column(100, {}, clustering)] as const]);
      const order = orderOf('body');
      const question = {
        ...QUESTION,
        branches: undefined,
        isById: false,
        order,
        filters: [{ column: 'slug', values: ['x'] }],
      };
      const way = shortestWay(question, () => ({ ...documents, columns }));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([walkBefore(0), walkBefore(1)]).toEqual([400, 50]);
  });

  it('a walk is shorter by two pages a row where rows may have a former version', () => {
    const documents = tables(100_000).get('documents')!;
    const walkOf = (dead: number | undefined) => {
      const opaque = ofFilter({ rows: 10_000, cost: 20_000, kind: 'own', lookUps: [] });
      const way = shortestWay({ ...QUESTION, branches: undefined, opaque }, () => ({ ...documents, dead }));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([undefined, 0, 500, 30_000].map(walkOf)).toEqual([6_400, 6_400, 6_400, 1_600]);
  });

  it('a walk of former versions reads no more pages than the table has', () => {
    const documents = { ...tables(100_000).get('documents')!, dead: 100_000, pages: 1_000 };
    const opaque = ofFilter({ rows: 10_000, cost: 200_000, kind: 'own', lookUps: [] });
    expect(shortestWay({ ...QUESTION, branches: undefined, opaque }, () => documents)).toMatchObject({ walk: 800 });
  });

  it('a bounded walk passes at least twice the rows of the page', () => {
    const known = tables(100_000);
    const walkFor = (most: number) => {
      const opaque = ofFilter({ rows: 1_000, cost: 2_000, kind: 'own', lookUps: [] });
      const way = shortestWay({ ...QUESTION, branches: undefined, most, opaque }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([21, 101, 1_001].map(walkFor)).toEqual([800, 800, 3_200]);
  });

  it('a walk by ids is shorter where the table has another order', () => {
    const documents = tables(100_000).get('documents')!;
    const ofRule = { ...one('status', 'draft', 1), tests: [{ column: 'status', values: ['draft'] }] };
    const walkIn = (clustering: number) => {
      const columns = new Map([...documents.columns, ['id', column(100_000, {}, clustering)] as const]);
      const way = shortestWay({ ...QUESTION, branches: [ofRule] }, () => ({ ...documents, columns }));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([walkIn(1), walkIn(0)]).toEqual([6_400, 3_200]);
  });

  it('a walk is shorter where each related row looks up others, and none where these are many', () => {
    const known = tables(100_000);
    const walkBy = (within: PageQuestion['lookUps']) => {
      const lookUps = [{ table: 'parents', column: 'id', isId: true, within } as const];
      const way = shortestWay({ ...QUESTION, branches: undefined, lookUps }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    const one = { table: 'parents', column: 'id', isId: true, within: [] } as const;
    expect([[], [one], [one, one]].map(walkBy)).toEqual([1_600, 800, 800]);
    expect(walkBy([{ table: 'documents', column: 'status', within: [] }])).toBeUndefined();
  });

  it('a walk is longer where few records have a value to look up others by', () => {
    const known = new Map(tables(100_000));
    const documents = known.get('documents')!;
    const lookUps = [{ table: 'parents', column: 'id', isId: true, by: 'parent_id', within: [] } as const];
    const walkIf = (nullShare: number) => {
      const columns = new Map([...documents.columns, ['parent_id', { ...column(100), nullShare }] as const]);
      known.set('documents', { ...documents, columns });
      const way = shortestWay({ ...QUESTION, branches: undefined, lookUps }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([0, 0.9].map(walkIf)).toEqual([1_600, 6_400]);
  });

  it('a walk under a rule that looks up others passes more rows than the rule is tested for, if a filter leaves out some', () => {
    const known = tables(100_000);
    const lookUps = [TARGET];
    const opaque = ofFilter({ rows: 90_000, cost: 20_000, kind: 'own', lookUps: [] });
    const wayOf = (question: Partial<PageQuestion>) =>
      shortestWay({ ...QUESTION, branches: undefined, lookUps, ...question }, (table) => known.get(table));
    expect(wayOf({ opaque })).toMatchObject({ walk: 12_800, tested: 1_600 });
    expect(wayOf({ opaque: { ...opaque, rows: 5_000 } })).toMatchObject({ walk: 12_800, tested: 800 });
    expect(wayOf({})).not.toHaveProperty('tested');
    expect(wayOf({ opaque, lookUps: [] })).toBeUndefined();
  });

  it('a longer walk comes before the rows of a filter that finds many', () => {
    const known = tables(100_000);
    const wayTo = (rows: number) => {
      const opaque = ofFilter({ rows, cost: 10_000, kind: 'mixed', lookUps: [TARGET] });
      return shortestWay({ ...QUESTION, branches: undefined, isOpen: true, opaque }, (table) => known.get(table));
    };
    expect(wayTo(1_000)).toEqual({ kind: 'gathered', by: 'filters', walk: 200 });
    expect(wayTo(90_000)).toEqual({ kind: 'gathered', by: 'filters', walk: 1_600 });
  });

  it('related rows that the database keeps in memory cost their reading, and not a look-up for each row', () => {
    const known = tables(100_000);
    const wayTo = (hashed: number | undefined, looped = 0, cost = 10_000_000) => {
      const opaque = ofFilter({ rows: 1_000, cost, kind: 'mixed', lookUps: [TARGET], hashed, looped });
      return shortestWay({ ...QUESTION, branches: undefined, isOpen: true, opaque }, (table) => known.get(table));
    };
    expect(wayTo(200)).toEqual({ kind: 'gathered', by: 'filters', walk: 800 });
    // Others are looked up beside them.
    expect(wayTo(200, 5)).toEqual({ kind: 'gathered', by: 'filters', walk: 6_400, longWalk: 51_200 });
    // … but for few records, where an index finds these first.
    expect(wayTo(200, 5, 30_000)).toEqual({ kind: 'gathered', by: 'filters', walk: 800 });
    expect(wayTo(undefined)).toEqual({ kind: 'gathered', by: 'filters', walk: 6_400, longWalk: 204_800 });
  });

  it('a filter whose rows are looked up one by one takes as long for all rows as a walk of them', () => {
    const known = tables(100_000);
    const many = { table: 'documents', column: 'status', within: [] };
    const wayTo = (lookedUp: { readonly rows: number; readonly cost: number } | undefined) => {
      const opaque = ofFilter({ rows: 40_000, cost: 10_000, kind: 'mixed', lookUps: [many], lookedUp });
      return shortestWay({ ...QUESTION, branches: undefined, isOpen: true, opaque }, (table) => known.get(table));
    };
    expect(wayTo(undefined)).toEqual({ kind: 'gathered', by: 'filters' });
    expect(wayTo({ rows: 100_000, cost: 3 })).toBeUndefined();
  });

  it('a walk in the order of a column whose values repeat reads rows to order them, and tests only the first', () => {
    const known = tables(100_000);
    const wayBy = (isWhole: boolean) => {
      const order = { ...orderOf('stage'), isWhole };
      const opaque = ofFilter({ rows: 300, cost: 200_000, kind: 'mixed', lookUps: [TARGET] });
      const question = { ...QUESTION, branches: undefined, isOpen: true, isById: false, order, opaque };
      return shortestWay(question, (table) => known.get(table));
    };
    expect(wayBy(true)).toEqual({ kind: 'gathered', by: 'filters', walk: 6_400 });
    expect(wayBy(false)).toEqual({
      kind: 'gathered',
      by: 'filters',
      walk: 3_200,
      first: { upTo: 'new', isAlone: true },
    });
  });

  it('the first value of an order decides how many rows are ordered before the first of them, where statistics name all values', () => {
    const known = tables(100_000);
    const values = { few: 0.02, most: 0.93, some: 0.05 };
    const kinds = { ...known.get('documents')!, columns: new Map([['kind', column(3, values)]]) };
    const wayBy = (order: Partial<ColumnOrder>) => {
      const asked = { ...orderOf('kind'), isWhole: false, ...order };
      const opaque = ofFilter({ rows: 90_000, cost: 9_000, kind: 'own', lookUps: [] });
      const question = { ...QUESTION, branches: undefined, isOpen: true, isById: false, order: asked, opaque };
      return shortestWay(question, (table) => (table === 'documents' ? kinds : known.get(table)));
    };
    const later = (after: string): Partial<ColumnOrder> => ({ isFirstPage: false, after });
    const ways = [
      wayBy({}),
      wayBy({ descending: true }),
      wayBy({ isFirstPage: false }),
      wayBy(later('most')),
      wayBy(later('some')),
      wayBy({ ...later('few'), descending: true }),
      wayBy({ ...later('g'), descending: true }),
    ];
    const walks = ways.map((way) => way?.kind === 'gathered' && [way.walk, way.first]);
    expect(walks).toEqual([
      [1_600, { upTo: 'few', isAlone: true }],
      [3_200, { upTo: 'some', isAlone: true }],
      [1_600, undefined],
      [1_600, undefined],
      [3_200, undefined],
      [6_400, undefined],
      [6_400, undefined],
    ]);
  });

  it('the first values of an order bound the page of an open rule where PostgreSQL would order many more rows', () => {
    const wayBy = (values: Readonly<Record<string, number>>, order: Partial<ColumnOrder> = {}, rows = 100_000) => {
      const known = { rows, columns: new Map([['kind', column(3, values)]]) };
      const asked = { ...orderOf('kind'), isWhole: false, ...order };
      const question = { ...QUESTION, branches: undefined, isOpen: true, isById: false, order: asked };
      return shortestWay(question, () => known);
    };
    const few = { few: 0.02, most: 0.93, some: 0.05 };
    expect(wayBy(few)).toEqual({ kind: 'gathered', by: 'all', walk: 50, first: { upTo: 'few', isAlone: true } });
    expect(wayBy(few, { descending: true })).toEqual({
      kind: 'gathered',
      by: 'all',
      walk: 50,
      first: { upTo: 'some', isAlone: true },
    });
    // Few rows come before the second value, of which the first rows are enough where an index has them in their order.
    const second = { a: 0.0001, b: 0.01, c: 0.9 };
    expect(wayBy(second)).toMatchObject({ first: { upTo: 'b', isAlone: true } });
    expect(wayBy(second, { isThenById: false })).toMatchObject({ first: { upTo: 'b', isAlone: false } });
    // A value of which statistics know that it is rare may come before all others.
    expect(wayBy({ b: 0.4, c: 0.5998 })).toMatchObject({ first: { upTo: 'b', isAlone: true } });
    expect(wayBy({ b: 0.4, c: 0.59 })).toBeUndefined();
    expect(wayBy({ a: 0.3, b: 0.3, c: 0.4 }, { isThenById: false })).toBeUndefined();
    // A plan of its own costs more than the rows of a small table.
    expect(wayBy(few, {}, 5_000)).toBeUndefined();
    expect(wayBy(few, { isWhole: true })).toBeUndefined();
    expect(wayBy(few, { isFirstPage: false })).toBeUndefined();
  });

  it('the bounds of the other values decide whether a frequent value is near the start of an order', () => {
    const known = tables(100_000);
    const dues = { ...column(50_001, { 5: 0.5 }), bounds: ['6', '7', '70', '800'] };
    const wayBy = (descending: boolean, bounds: readonly string[] | undefined = dues.bounds) => {
      const due = { rows: 100_000, columns: new Map([['due', { ...dues, bounds }]]) };
      const asked = { ...orderOf('due'), isWhole: false, isThenById: false, descending };
      const opaque = ofFilter({ rows: 90_000, cost: 9_000, kind: 'own', lookUps: [] });
      const question = { ...QUESTION, branches: undefined, isOpen: true, isById: false, order: asked, opaque };
      return shortestWay(question, (table) => (table === 'documents' ? due : known.get(table)));
    };
    const walks = [wayBy(true), wayBy(false), wayBy(true, ['1', '2', '4', '5'])].map(
      (way) => way?.kind === 'gathered' && way.walk,
    );
    expect(walks).toEqual([6_400, 1_600, 1_600]);
  });

  it('no walk is so long that it orders the many rows of another value', () => {
    const wayOf = (few: number, isThenById: boolean) => {
      const known = { rows: 100_000, columns: new Map([['kind', column(2, { few, most: 1 - few })]]) };
      const asked = { ...orderOf('kind'), isWhole: false, isThenById };
      const opaque = ofFilter({ rows: 200, cost: 2_000, kind: 'own', lookUps: [] });
      const question = {
        ...QUESTION,
        branches: undefined,
        isOpen: true,
        isById: false,
        order: asked,
        opaque,
        most: 51,
      };
      return shortestWay(question, () => known);
    };
    expect(wayOf(0.0008, false)).toEqual({ kind: 'gathered', by: 'filters' });
    expect(wayOf(0.008, true)).toMatchObject({ kind: 'gathered', by: 'filters', walk: 200, first: { upTo: 'few' } });
  });

  it('few records look up their related rows sooner than the related table is read, and those without a value look up none', () => {
    const parents = { rows: 100_000, columns: new Map() };
    const isSooner = (rows: number, nullShare: number, key: Pick<LookUp, 'column' | 'isId'> = BY_ID): boolean => {
      const known = { rows, columns: new Map([['parent_id', { ...column(100), nullShare }]]) };
      const lookUp = { ...key, table: 'parents', by: 'parent_id', within: [] };
      return areFewLookUps([lookUp], 'documents', (table) => (table === 'parents' ? parents : known));
    };
    expect([isSooner(1_000, 0), isSooner(4_000, 0), isSooner(4_000, 0.9)]).toEqual([true, false, true]);
    expect(isSooner(1_000, 0, { column: 'code' })).toBe(false);
  });

  it('the links of a page are many where they take some milliseconds to read, and more than those of others', () => {
    const links = {
      rows: 400_000,
      columns: new Map([['member_id', column(10_000, { frequent: 0.015, usual: 0.0001 })]]),
    };
    const areMany = (value: string) => areManyRows({ column: 'member_id', values: [value] }, links);
    expect([areMany('frequent'), areMany('usual'), areMany('x')]).toEqual([true, false, false]);
  });

  it('many rows of a value are joined for the keys of a list, and not those of a list of one table', () => {
    const known = tables(100_000);
    const members = { rows: 50_000, columns: new Map([['user_id', column(10_000, { busy: 0.1 })]]) };
    const statisticsOf = (table: string) => (table === 'memberships' ? members : known.get(table));
    const ofUser = (user: string) => teamsOf(user).count!;
    const ofTeams = (user: string): Branch['count'] => ({
      kind: 'rows',
      table: 'parents',
      share: { kind: 'all', of: [{ kind: 'keys', column: 'team_id', keys: ofUser(user) }] },
      areIds: true,
    });
    const counts = [ofTeams('busy'), ofTeams('me'), ofUser('busy'), undefined];
    expect(counts.map((count) => joinsManyRows(count, statisticsOf))).toEqual([true, false, false, false]);
  });

  it('a walk comes before rows that give keys, of which there may be none', () => {
    const known = tables(100_000);
    const branches = [
      one('owner_id', 'me'),
      byKeys('team_id', { kind: 'rows', table: 'parents', share: MANY, areIds: false }),
    ];
    const way = shortestWay({ ...QUESTION, branches }, (table) => known.get(table));
    expect(way).toEqual({ kind: 'gathered', by: 'all', walk: 6_400 });
  });

  it('unknown keys of related rows come before a way that costs more than to read these', () => {
    const lookUps = [{ table: 'parents', column: 'id', isId: true, within: [] } as const];
    const wayBy = (rows: number, keys: Partial<PageQuestion>, column = 'parent_id') => {
      const known = new Map([...tables(100_000), ['parents', { rows, columns: new Map() }]]);
      const relatedKeys = { column, isId: column === 'id', tables: ['parents'], tested: ['score'] } as const;
      const indexed = new Set([...QUESTION.indexed, 'parent_id']);
      const isIndexed = () => false;
      const question = { ...QUESTION, branches: undefined, lookUps, indexed, isIndexed, relatedKeys, ...keys };
      const way = shortestWay(question, (table) => known.get(table));
      return way?.kind === 'gathered' ? (way.keys ?? 0) : undefined;
    };
    expect(wayBy(1_000, { besideKeys: [] })).toBe(200);
    expect(wayBy(1_000, { besideKeys: [] }, 'id')).toBe(200);
    // A scan of the related table takes as long as all that comes after it, unless an index finds the few rows that count.
    expect(wayBy(80_000, { besideKeys: [] })).toBe(0);
    expect(wayBy(80_000, { besideKeys: [], isIndexed: () => true })).toBe(200);
    expect(wayBy(1_000, { besideKeys: undefined })).toBe(0);
    expect(wayBy(1_000, { besideKeys: [one('status', 'odd')] })).toBe(200);
    expect(wayBy(1_000, { besideKeys: [one('status', 'published')] })).toBe(0);
    expect(wayBy(1_000, { besideKeys: [] }, 'body')).toBe(0);
  });

  it('all rows that long lists of keys find take at least as long as the keys, of which the database expects ten', () => {
    const known = tables(100_000);
    const wayOf = (user: string) => {
      const opaque = {
        ...ofFilter({ rows: 90_000, cost: 20_000, kind: 'own', lookUps: [] }),
        all: { rows: 100, cost: 100 },
      };
      const question = { ...QUESTION, branches: [teamsOf(user)], opaque };
      return shortestWay(question, (table) => known.get(table));
    };
    expect(wayOf('me')).toMatchObject({ walk: 100 });
    expect(wayOf('busy')).toMatchObject({ kind: 'gathered', by: 'all', walk: 6_400 });
  });

  it('a filter that may find no rows by a test of other records is read first, and its rows are in order before the rule', () => {
    const parents = { ...tables(100_000).get('parents')!, rows: 600_000 };
    const known = new Map([...tables(100_000), ['parents', parents] as const]);
    const ids = byKeys('id', { kind: 'rows', table: 'parents', share: MANY, areIds: false });
    const wayOf = (isAllOrNone: boolean, rows: number) => {
      const found = { rows, cost: 250_000, hashed: 1_000, scanned: ['documents'] };
      const all = { ...found, scanned: ['documents', 'parents'] };
      const opaque = { ...found, kind: 'mixed', lookUps: [TARGET], isAllOrNone, all } as const;
      const question = { ...QUESTION, branches: [ids], lookUps: [TARGET], opaque };
      return shortestWay(question, (table) => known.get(table));
    };
    expect(wayOf(false, 20_000)).toMatchObject({ kind: 'gathered', by: 'all' });
    expect(wayOf(true, 20_000)).toMatchObject({ kind: 'gathered', by: 'filters', isOrdered: true });
    // The look-ups of the rule would take too long for many rows.
    expect(wayOf(true, 90_000)).not.toHaveProperty('isOrdered');
  });

  it('keys that are ids are read in their order, of which the first are enough', () => {
    const known = tables(100_000);
    const ids = byKeys('id', { kind: 'rows', table: 'parents', share: MANY, areIds: false });
    const way = shortestWay({ ...QUESTION, branches: [ids], lookUps: [TARGET] }, (table) => known.get(table));
    expect(way).toEqual({ kind: 'branches', branches: [ids], walk: 1_600 });
  });

  it('the links of a row are as many as its value has, however many the average row has', () => {
    const known = tables(100_000);
    const keysOf = (value: string) =>
      estimatedKeys(
        {
          kind: 'rows',
          table: 'parents',
          links: { table: 'documents__tags', column: 'member_id' },
          share: { kind: 'values', column: 'id', isId: true, values: [value] },
          areIds: false,
        },
        (table) => known.get(table),
      );
    expect([keysOf('frequent'), Math.round(keysOf('rare')!)]).toEqual([50_000, 100]);
  });

  it('rows that give keys have the frequent ones, of which each has more rows than the average key', () => {
    const skewed = column(10_000, { hot: 0.2, warm: 0.05 });
    const known = new Map([['tasks', { rows: 50_000, columns: new Map([['team_id', skewed]]) }]]);
    const shareBy = (of: string, team = skewed) => {
      const count = { kind: 'rows', table: 'tasks', column: of, share: MANY, areIds: false } as const;
      return Number(shareOfKey(team, count, (table) => known.get(table)).toPrecision(2));
    };
    expect([shareBy('team_id'), shareBy('team_id', column(10_000, { warm: 0.2 })), shareBy('other')]).toEqual([
      0.043, 0.01, 0.0001,
    ]);
    const documents = { rows: 100_000, columns: new Map([['team_id', skewed]]) };
    const wayBy = (given: { readonly column?: string }) => {
      const branch = byKeys('team_id', { kind: 'rows', table: 'tasks', ...given, share: MANY, areIds: false });
      const filters = [{ column: 'stage_of_none', values: ['x'] }];
      return shortestWay({ ...QUESTION, branches: [branch], filters }, (table) => known.get(table) ?? documents)?.kind;
    };
    expect([wayBy({ column: 'team_id' }), wayBy({})]).toEqual(['gathered', 'branches']);
  });

  it('all records that match are ordered, so that a walk before them is longer where these are many', () => {
    const known = tables(200_000);
    const walkOf = (filters: PageQuestion['filters']) => {
      const way = shortestWay({ ...QUESTION, branches: undefined, filters }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([walkOf([]), walkOf([{ column: 'stage_of_none', values: ['x'] }])]).toEqual([25_600, 12_800]);
  });

  it('a walk looks up related rows for the rule only where a row meets the filters', () => {
    const known = tables(100_000);
    const walkFor = (filters: PageQuestion['filters']) => {
      const lookUps = [{ table: 'memberships', column: 'user_id', within: [TARGET] }];
      const way = shortestWay({ ...QUESTION, branches: undefined, lookUps, filters }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([walkFor([]), walkFor([{ column: 'stage_of_none', values: ['x'] }])]).toEqual([200, 12_800]);
  });

  it('rows that depend on the whole record are looked up for each, however all records are found', () => {
    const known = tables(100_000);
    const wayFor = (isOfEach: { readonly isOfEach?: true }) => {
      const lookUps = [{ table: 'memberships', column: 'user_id', within: [TARGET], ...isOfEach }];
      return shortestWay({ ...QUESTION, branches: undefined, lookUps }, (table) => known.get(table));
    };
    expect(wayFor({})).toEqual({ kind: 'gathered', by: 'all', walk: 200 });
    expect(wayFor({ isOfEach: true })).toEqual({ kind: 'gathered', by: 'all', walk: 25_600 });
  });

  it('a walk looks up related rows for as long as their table takes to read, and a longer one reads it as a whole', () => {
    const wayFor = (parents: number, isOfEach: { readonly isOfEach?: true } = {}) => {
      const known = new Map([...tables(100_000), ['parents', { rows: parents, columns: new Map() }]]);
      const lookUps = [{ ...TARGET, ...isOfEach }];
      const way = shortestWay({ ...QUESTION, branches: undefined, lookUps }, (table) => known.get(table));
      return way?.kind === 'gathered' && [way.walk, way.longWalk];
    };
    expect([100, 4_000, 20_000].map((parents) => wayFor(parents))).toEqual([
      [0, 12_800],
      [400, 6_400],
      [800, undefined],
    ]);
    expect(wayFor(4_000, { isOfEach: true })).toEqual([25_600, undefined]);
  });

  it('the rows of a record of the request are kept before a look-up of a frequent key, which may read more', () => {
    const wayFor = (frequent: number, of: { readonly of?: string }) => {
      const columns = new Map([
        ['parent_id', column(20_000, { 1: frequent })],
        ['owner_id', column(5_000, { 1: 0.1 })],
      ]);
      const known = new Map([...tables(200_000), ['children', { rows: 200_000, pages: 4_000, columns }]]);
      const lookUps = [{ table: 'children', column: 'parent_id', within: [], ...of }];
      const way = shortestWay({ ...QUESTION, branches: undefined, lookUps }, (table) => known.get(table));
      return way?.kind === 'gathered' && [way.walk, way.longWalk];
    };
    expect([wayFor(0.08, { of: 'owner_id' }), wayFor(0.001, { of: 'owner_id' }), wayFor(0.08, {})]).toEqual([
      [0, 6_400],
      [800, 6_400],
      [800, undefined],
    ]);
  });

  it('look-ups that are lists of keys where all records are read cost no row there', () => {
    const known = tables(100_000);
    const lookUps = [{ table: 'memberships', column: 'user_id', within: [TARGET, TARGET] }];
    const wayFor = (unlisted?: PageQuestion['unlisted']) =>
      shortestWay({ ...QUESTION, branches: undefined, lookUps, unlisted }, (table) => known.get(table));
    expect([wayFor(), wayFor(lookUps), wayFor([])].map((way) => way?.kind === 'gathered' && way.walk)).toEqual([
      200, 200, 100,
    ]);
  });

  it('a walk before a page of few records may be short', () => {
    const known = tables(100_000);
    const walkFor = (most: number) => {
      const opaque = ofFilter({ rows: 1_000, cost: 6_000, kind: 'own', lookUps: Array(6).fill(TARGET) });
      const way = shortestWay({ ...QUESTION, branches: undefined, most, opaque }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([2, 21].map(walkFor)).toEqual([25, undefined]);
  });

  it('rows that give keys count as their whole table where no index finds them', () => {
    const known = tables(100_000);
    const of = { ...teamsOf('someone'), alternatives: [{ ...one('status', 'odd'), place: 1 }] };
    const placeFor = (isIndexed: boolean) => {
      const question = { ...QUESTION, branches: [MINE, of], isIndexed: () => isIndexed };
      const way = shortestWay(question, (table) => known.get(table));
      return way?.kind === 'branches' ? way.branches[1]!.place : way;
    };
    expect([placeFor(true), placeFor(false)]).toEqual([0, 1]);
  });

  it('a walk looks up related rows for the filter too', () => {
    const known = tables(100_000);
    const walkFor = (kind: 'own' | 'mixed') => {
      const opaque = ofFilter({ rows: 30_000, cost: 10_000, kind, lookUps: kind === 'own' ? [] : [TARGET] });
      const way = shortestWay({ ...QUESTION, branches: undefined, opaque }, (table) => known.get(table));
      return way?.kind === 'gathered' ? way.walk : undefined;
    };
    expect([walkFor('own'), walkFor('mixed')]).toEqual([6_400, 800]);
  });

  it.each([
    { says: 'one range each', branches: [MINE, one('status', 'x')], most: 9_000, chosen: 'branches' },
    { says: 'keys on a first page', branches: [MINE, teamsOf('me')], most: 101, chosen: 'branches' },
    { says: 'keys on far pages', branches: [MINE, teamsOf('me')], most: 102, chosen: 'plain' },
    { says: 'a list on far pages', branches: [listOf('status', ['x', 'y'])], most: 9_000, chosen: 'plain' },
    { says: 'ids on far pages', branches: [MINE, listOf('id', ['x', 'y'])], most: 9_000, chosen: 'branches' },
  ])('the planner without statistics, $says: $chosen', ({ branches, most, chosen }) => {
    const way = shortestWay({ ...QUESTION, branches, most }, () => undefined);
    expect(way).toEqual(chosen === 'branches' ? { kind: 'branches', branches } : undefined);
  });
});

it('starts from the links where nothing is known of them', () => {
  const known = tables(100_000);
  const branches = [MINE, teamsOf('me')];
  const question = { ...QUESTION, branches, links: linksTo('frequent') };
  const of = (...unknown: readonly string[]) =>
    shortestWay(question, (table) => (unknown.includes(table) ? undefined : known.get(table)));
  expect([of('documents__tags'), of('documents'), of()]).toEqual([
    undefined,
    undefined,
    { kind: 'branches', branches },
  ]);
});

// ---------------------------------------------------------------- statements

const SCHEMA = `
roles: { member: {}, editor: {} }
register: { roles: [member] }
collections:
  teams:
    fields: { name: { type: string, max: 80 } }
    relations:
      memberships: { kind: has_many, collection: memberships, via: team }
      notes: { kind: has_many, collection: notes, via: team }
    access: { view: true, create: true }
  memberships:
    fields: { role: { type: string, max: 20 } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
    access: { view: true, create: true }
  notes:
    fields:
      title: { type: string, required: true, max: 80 }
      status: { type: string, required: true, enum: [draft, review, published], default: draft }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      team: { kind: belongs_to, collection: teams }
      labels: { kind: many_to_many, collection: labels }
    access:
      view:
        - when: '@record.owner = @request.auth.id or any(@record.team.memberships as m, m.user = @request.auth.id)'
        - { roles: [editor], when: '@record.status in ["review", "published"] and @record.title != "secret"' }
      create: true
  labels:
    fields: { name: { type: string, required: true, max: 80 } }
    access: { view: '@record.name != "secret"', create: true }
  tasks:
    fields: { title: { type: string, required: true, max: 80 } }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access: { view: '@record.owner = @request.auth.id', create: true }
`;

const TABLES = ['teams', 'memberships', 'notes'];

describe.each(KINDS)('the pages of a list (%s)', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let editor: Caller;
  /** Ids of labels, by name. */
  const labels = new Map<string, string>();
  const sent: string[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(db, SCHEMA);
    ann = await world.user('ann@example.org');
    editor = await world.user('editor@example.org', ['editor']);
    const teams = [];
    for (let i = 0; i < 3; i++) teams.push(await ann.create('teams', { name: `team ${i}` }));
    // Twice in one team, once in another.
    for (const [i, role] of [
      [0, 'a'],
      [0, 'b'],
      [1, 'a'],
    ] as const)
      await ann.create('memberships', { team: teams[i]!.id, user: ann.id, role });
    for (const name of ['half', 'rare', 'none', 'secret'])
      labels.set(name, (await ann.create('labels', { name })).id as string);
    const statuses = ['draft', 'review', 'published'];
    for (let i = 0; i < 40; i++) {
      const owner = i % 5 === 0 ? ann : editor;
      const team = i % 4 === 3 ? null : teams[i % 3]!.id;
      const set = [...(i % 2 === 0 ? ['half'] : []), ...(i % 10 === 0 ? ['rare'] : [])].map(
        (name) => labels.get(name)!,
      );
      const title = i % 7 === 0 ? 'secret' : `n${i}`;
      await owner.create('notes', { title, status: statuses[i % 3], team, labels: { set } });
    }
    // No caller may read this label, so no caller may set it.
    const secret = param('uuid', labels.get('secret')!);
    await db.run(
      sql`INSERT INTO notes__labels SELECT record_id, ${secret} FROM notes__labels WHERE member_id = ${param('uuid', labels.get('half')!)}`,
    );
  });
  afterAll(() => db?.close());

  const recorded = (branches: boolean) => {
    const watched = watchedReads(db, ({ text }) => sent.push(text));
    return createRecords(watched, world.schema, {
      choosesWay: ({ branches: given }) => (branches && given ? { kind: 'branches', branches: given } : undefined),
    });
  };
  const page = async (caller: Caller, branches: boolean, more: object = {}) => {
    sent.length = 0;
    const request = { limit: 5, offset: 0, ...more };
    const found = await recorded(branches).list(caller.ask('notes'), request);
    return { ...found, json: String(found.json) };
  };

  it('takes the first ids of each branch, a range for each key', async () => {
    await page(ann, true);
    const lines = [
      'SELECT "t"."id" AS id FROM "notes" AS "t" WHERE "t"."owner_id" BETWEEN $1::uuid AND $2::uuid',
      'ORDER BY t."owner_id", "t"."id" LIMIT 6::int8) UNION ALL (',
      'SELECT b.id FROM (SELECT key FROM',
      '(SELECT "t_1"."team_id" FROM "memberships" AS "t_1" WHERE "t_1"."user_id" = $3::uuid) AS k (key) GROUP BY key) AS k',
      'CROSS JOIN LATERAL (',
      'SELECT "t"."id" AS id FROM "notes" AS "t" WHERE t."team_id" BETWEEN k.key AND k.key',
      'ORDER BY t."team_id", "t"."id" LIMIT 6::int8) AS b)))',
      'ORDER BY "t"."id" LIMIT $4::int8 OFFSET $5::int8',
    ];
    const [text] = sent.map((each) => each.replaceAll(/\s+/g, ' '));
    expect([sent.length, text!.slice(text!.indexOf('ARRAY((') + 'ARRAY(( '.length)]).toEqual([1, lines.join(' ')]);
  });

  it('shows the same, byte for byte, on every page of either way', async () => {
    const status: ExactFilter = {
      kind: 'field',
      field: world.schema.collections.get('notes')!.fields.get('status')!,
      value: 'review',
    };
    let records = 0;
    for (const caller of [ann, editor])
      for (const filters of [[], [status]])
        for (const offset of [0, 3, 7, 20, 39, 40, 1_000]) {
          const [plain, branches] = [
            await page(caller, false, { offset, filters }),
            await page(caller, true, { offset, filters }),
          ];
          expect(branches).toEqual(plain);
          records += (JSON.parse(plain.json) as readonly unknown[]).length;
        }
    expect(records).toBeGreaterThan(60);
  });

  it('the database estimates filters of large tables, and of smaller ones where they look up rows', () => {
    const notes = world.schema.collections.get('notes')!;
    const columns = new Map([['note_id', column(10, {})]]);
    const many = { table: 'comments', column: 'note_id', within: [] };
    const isLarge = (rows: number, filter: 'own' | 'mixed' | 'related', lookUps: readonly LookUp[] = []): boolean =>
      new PagePlanner(world.schema, () => ({ rows, columns })).isLarge(notes, filter, lookUps);
    const asked = [isLarge(20_000, 'own'), isLarge(5_000, 'own'), isLarge(5_000, 'mixed'), isLarge(500, 'related')];
    expect(asked).toEqual([true, false, true, false]);
    // Each of 200 records has 20 others, and each of 900 has 90.
    expect([isLarge(200, 'mixed', [many]), isLarge(900, 'mixed', [many])]).toEqual([false, true]);
  });

  it('a page is planned for a value that is far more frequent than others', async () => {
    const statistics = new Map([['status', column(3, { draft: 0.97, review: 0.02, published: 0.01 })]]);
    const planned: boolean[] = [];
    const watched = watchedReads(db, ({ isPlannedAnew }) => planned.push(isPlannedAnew));
    const records = createRecords(watched, world.schema, {
      statisticsOf: () => ({ rows: 100_000, columns: statistics }),
    });
    const field = world.schema.collections.get('notes')!.fields.get('status')!;
    for (const value of ['draft', 'review', 'published'])
      await records.list(ann.ask('notes'), { exact: [{ kind: 'field', field, value }], limit: 5, offset: 0 });
    expect(planned).toEqual([true, false, false]);
  });

  it('an expand is planned for a caller who has far more rows than others', async () => {
    const planned: boolean[] = [];
    const watched = watchedReads(db, ({ isPlannedAnew }) => planned.push(isPlannedAnew));
    const isPlanned = async (owners: Readonly<Record<string, number>>) => {
      const columns = new Map([['owner_id', column(10_000, owners)]]);
      const records = createRecords(watched, world.schema, {
        statisticsOf: () => ({ rows: 100_000, columns }),
      });
      const relation = world.schema.collections.get('teams')!.relations.get('notes')!;
      planned.length = 0;
      await records.list(ann.ask('teams'), {
        limit: 5,
        offset: 0,
        expands: [{ relation, expands: [], isCounted: true }],
      });
      return planned;
    };
    expect(await isPlanned({ [ann.id]: 0.02 })).toEqual([false, true, true]);
    expect(await isPlanned({ [editor.id]: 0.02 })).toEqual([false, false, false]);
  });

  /** Lists notes by their status, and keeps the texts of the statements. */
  const byStatus = (caller: Caller, descending: boolean) => {
    const path = sortPathOf('status', 'notes', world.schema);
    if (typeof path === 'string') throw new Error(path);
    const texts: string[] = [];
    const watched = watchedReads(db, ({ text }) => texts.push(text));
    const asked = async (choosesWay: ChoosesWay, more: Pick<ListRequest, 'filter' | 'limit' | 'offset'>) => {
      const records = createRecords(watched, world.schema, { choosesWay });
      return String((await records.list(caller.ask('notes'), { ...more, sort: [{ path, descending }] })).json);
    };
    return { texts, asked };
  };

  it('a walk begins where the filter bounds its order', async () => {
    const { texts, asked: askedBy } = byStatus(editor, true);
    const asked = (text: string, choosesWay: ChoosesWay) => {
      const filter = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} }).filter!;
      return askedBy(choosesWay, { filter, limit: 20, offset: 0 });
    };
    const gathered: ChoosesWay = () => ({ kind: 'gathered', by: 'filters', walk: 50 });
    const walk = /FROM "notes" AS "t"\s+WHERE "t"."status" .+\s+ORDER BY .+\s+LIMIT 50/;
    for (const filter of ['status < "review"', 'title != "t1" and "draft" <= status', 'not (status > "review")']) {
      const shown = await asked(filter, () => undefined);
      expect(JSON.parse(shown).length).toBeGreaterThan(0);
      expect(await asked(filter, gathered), filter).toBe(shown);
      expect(texts.at(-1), filter).toMatch(walk);
    }
    await asked('status != "review" or status < "review"', gathered);
    expect(texts.at(-1)).not.toMatch(walk);
  });

  it('a walk that ends with a value of its order shows the same records, however many have it', async () => {
    for (const descending of [false, true]) {
      const { texts, asked: askedBy } = byStatus(ann, descending);
      const asked = (choosesWay: ChoosesWay) => askedBy(choosesWay, { limit: 8, offset: 1 });
      const shown = await asked(() => undefined);
      expect(JSON.parse(shown)).toHaveLength(8);
      for (const upTo of ['', 'draft', 'published', 'review', 'zzz']) {
        for (const isAlone of [false, true]) {
          const first = { upTo, isAlone };
          expect(await asked(() => ({ kind: 'gathered', by: 'all', walk: 50, first })), upTo).toBe(shown);
          const bound = isAlone ? /BETWEEN \$\d+::text AND \$\d+::text\s+ORDER BY/ : /[<>]= \$\d+::text\s+ORDER BY/;
          expect(texts.at(-1)).toMatch(bound);
        }
      }
    }
  });

  it('every way shows the same records in both directions, before and after a position', async () => {
    const sort = (descending: boolean) => [{ path: { steps: [], field: undefined, at: 'id' }, descending }] as never;
    const field = world.schema.collections.get('notes')!.fields.get('status')!;
    const exact: readonly ExactFilter[] = [{ kind: 'field', field, value: 'draft' }];
    const ways: readonly ChoosesWay[] = [
      () => undefined,
      ({ branches }) => branches && { kind: 'branches', branches, walk: 2 },
      ({ branches }) => branches && { kind: 'branches', branches, walk: 1_000 },
      ({ filters }) => ({ kind: 'range', of: filters[0]! }),
      () => ({ kind: 'gathered', by: 'filters' }),
      () => ({ kind: 'gathered', by: 'filters', isOrdered: true }),
      () => ({ kind: 'gathered', by: 'filters', isOrdered: true, walk: 5 }),
      () => ({ kind: 'gathered', by: 'all', walk: 5 }),
      () => ({ kind: 'gathered', by: 'all', walk: 20, tested: 4 }),
    ];
    const texts = new Set<string>();
    for (const descending of [false, true]) {
      const pages: string[] = [];
      for (const choosesWay of ways) {
        const watched = watchedReads(db, ({ text }) => texts.add(text));
        const records = createRecords(watched, world.schema, { choosesWay });
        let after: string | undefined;
        let shown = '';
        do {
          const asked = { exact, sort: sort(descending), limit: 3, offset: 0, cursors: { query: '', after } };
          const { json, nextCursor } = await records.list(ann.ask('notes'), asked);
          shown += json;
          after = nextCursor;
        } while (after !== undefined);
        pages.push(shown);
      }
      expect(new Set(pages).size).toBe(1);
      expect(pages[0]!.length).toBeGreaterThan(1_000);
    }
    expect(texts.size).toBe(ways.length * 2 * 2);
    // The filter alone chooses the index by which its rows are found, and not the order.
    const isFenced = (text: string) => /OFFSET 0\) AS t ORDER BY "t"\."id"(?: DESC)? OFFSET 0/.test(text);
    expect([...texts].filter(isFenced)).toHaveLength(2 * 2 * 2);
  });

  describe('a query on a database that cannot end a statement', () => {
    beforeAll(() => db.run(raw('CREATE SEQUENCE tests_of_time')));

    /** How often the statement has tested its time, for a query that finds nothing. */
    const testsOfTime = async (text: string, choosesWay: ChoosesWay): Promise<number> => {
      await db.run(raw(`SELECT setval('tests_of_time', 1)`));
      const statementInTime = raw(`nextval('tests_of_time') > 0`);
      const timed = { ...db, statementInTime, replicaFor: () => ({ rows: db.rows, run: db.run }) } as Database;
      const records = createRecords(timed, world.schema, { choosesWay });
      const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} });
      const { json } = await records.list(ann.ask('notes'), { filter, isQuery: true, limit: 5, offset: 0 });
      expect(String(json)).toBe('[]');
      const [[last]] = (await db.rows(raw('SELECT last_value FROM tests_of_time'))) as [[string]];
      return Number(last) - 1;
    };
    const listed = async (text?: string): Promise<number> => {
      const filter = text && compileFilter(text, { catalog: world.schema, collection: 'notes', params: {} }).filter;
      const { json } = await world.records.list(ann.ask('notes'), { ...(filter && { filter }), limit: 100, offset: 0 });
      return JSON.parse(String(json)).length;
    };

    const ways: readonly (readonly [name: string, choosesWay: ChoosesWay])[] = [
      ['a plain condition', () => undefined],
      ['branches', ({ branches }) => branches && { kind: 'branches', branches }],
      ['branches after a walk', ({ branches }) => branches && { kind: 'branches', branches, walk: 2 }],
      ['the range of a filter', ({ filters }) => ({ kind: 'range', of: filters[0]! })],
      ['all rows of the filters', () => ({ kind: 'gathered', by: 'filters' })],
      ['all rows after a walk', () => ({ kind: 'gathered', by: 'all', walk: 5 })],
    ];
    it.each(ways)('tests its time for each row that it filters by %s', async (_name, choosesWay) => {
      const none = 'any(labels as l, l.name = "no") or any(labels as l, l.name = "other")';
      const drafts = await listed('status = "draft"');
      expect(drafts).toBeGreaterThan(3);
      expect(await testsOfTime(`status = "draft" and (${none})`, choosesWay)).toBeGreaterThanOrEqual(drafts);
    });

    it('tests its time before each loop within a loop, whose rows may all be ruled out sooner', async () => {
      const [[notes]] = (await db.rows(raw('SELECT count(*) FROM notes'))) as [[string]];
      const loops = 'any(team.memberships as m, any(m.team.memberships as n, n.role = "none"))';
      expect(await testsOfTime(loops, () => undefined)).toBeGreaterThan(Number(notes));
    });
  });

  const labelled = (name: string): ExactFilter => {
    const relation = world.schema.collections.get('notes')!.relations.get('labels')!;
    if (relation.kind !== 'many_to_many') throw new Error('labels is a many_to_many');
    return { kind: 'any', relation, id: labels.get(name)! };
  };

  it('starts from the links, or from the branches, and shows the same', async () => {
    const titles: unknown[] = [];
    for (const caller of [ann, editor]) {
      for (const names of [['half'], ['rare'], ['half', 'rare'], ['none'], ['secret'], ['half', 'secret']]) {
        for (const offset of [0, 3]) {
          const more = { exact: names.map(labelled), offset, count: 'exact' };
          const plain = await page(caller, false, more);
          for (const text of sent)
            expect(text.replaceAll(/\s+/g, ' ')).toContain('FROM "notes__labels" AS "l" JOIN "notes" AS "t" ON');
          expect(await page(caller, true, more)).toEqual(plain);
          expect(sent[0]).toContain('UNION ALL');
          if (offset === 0) titles.push(plain.total);
        }
      }
    }
    const counted = async (user: string, names: readonly string[]): Promise<number> => {
      const all = await page(user === ann.id ? ann : editor, false, { limit: 100 });
      const ids = (JSON.parse(all.json) as { readonly id: string }[]).map(({ id }) => id);
      const rows = await db.rows(
        sql`SELECT record_id FROM notes__labels WHERE member_id = ANY(${param(
          'uuid[]',
          names.map((name) => labels.get(name)!),
        )})
             GROUP BY record_id HAVING count(*) = ${param('int8', names.length)}`,
      );
      return names.includes('secret') ? 0 : rows.filter(([id]) => ids.includes(id!)).length;
    };
    const expected: number[] = [];
    for (const { id } of [ann, editor])
      for (const names of [['half'], ['rare'], ['half', 'rare'], ['none'], ['secret'], ['half', 'secret']])
        expected.push(await counted(id, names));
    expect(titles).toEqual(expected);
    expect(expected.slice(0, 3).every((count) => count > 0)).toBe(true);
  });

  it('a query whose filter requires a link starts from the links too, and shows what the exact filter does', async () => {
    const status = world.schema.collections.get('notes')!.fields.get('status')!;
    const draft: ExactFilter = { kind: 'field', field: status, value: 'draft' };
    const cases: readonly (readonly [text: string, exact: readonly ExactFilter[]])[] = [
      ['labels contains $half', [labelled('half')]],
      ['any(labels as l, l.id = $rare)', [labelled('rare')]],
      ['labels contains $secret', [labelled('secret')]],
      ['status = "draft" and any(labels as l, l.id = $half)', [labelled('half'), draft]],
      ['labels contains $half and labels contains $rare', [labelled('half'), labelled('rare')]],
      ['labels contains $half and labels contains $secret', [labelled('half'), labelled('secret')]],
    ];
    for (const [text, exact] of cases) {
      const params = Object.fromEntries([...labels].filter(([name]) => text.includes(`$${name}`)));
      const { filter, issues } = compileFilter(text, { catalog: world.schema, collection: 'notes', params });
      expect(issues).toEqual([]);
      for (const caller of [ann, editor]) {
        const plain = await page(caller, false, { exact, count: 'exact' });
        for (const isByBranches of [false, true])
          expect([text, await page(caller, isByBranches, { filter, count: 'exact' })]).toEqual([text, plain]);
        await page(caller, false, { filter });
        expect(sent.join().replaceAll(/\s+/g, ' ')).toContain('FROM "notes__labels" AS "l" JOIN "notes" AS "t" ON');
      }
    }
  });

  it('a link under `or` or `not` begins no statement, and a null links to nothing', async () => {
    const params = { half: labels.get('half')! };
    for (const text of ['labels contains $half or status = "draft"', 'not (labels contains $half)']) {
      const { filter } = compileFilter(text, { catalog: world.schema, collection: 'notes', params });
      await page(ann, false, { filter });
      expect(sent.join()).not.toContain('AS "l" JOIN');
    }
    const { filter } = compileFilter('labels contains $half', {
      catalog: world.schema,
      collection: 'notes',
      params: { half: null },
    });
    expect((await page(ann, false, { filter, count: 'exact' })).total).toBe(0);
  });

  it('the pages of a list share few statements', async () => {
    const texts = new Set<string>();
    for (const offset of [0, 1, 5, 20, 21, 100, 150, 999, 1_000, 5_000, 9_000]) {
      for (const limit of [10, 20, 50, 77]) {
        await page(ann, true, { offset, limit });
        for (const text of sent) texts.add(text);
      }
    }
    expect(texts.size).toBeLessThan(15);
  });

  it('walks to pages that are very far', async () => {
    await page(ann, true, { offset: 100_000 });
    expect(sent.join()).not.toContain('UNION');
  });

  it('a page of one range is in the order of the index on its column and the id', async () => {
    for (let i = 0; i < 3; i++) await ann.create('tasks', { title: `t${i}` });
    const watched = watchedReads(db, ({ text }) => sent.push(text));
    const records = createRecords(watched, world.schema);
    const sorts = [undefined, [{ path: { steps: [], field: undefined, at: 'id' }, descending: true }]] as const;
    const titles: string[] = [];
    for (const sort of sorts) {
      sent.length = 0;
      const { json } = await records.list(ann.ask('tasks'), { limit: 5, offset: 0, ...(sort && { sort }) } as never);
      titles.push((JSON.parse(String(json)) as readonly { readonly title: string }[]).map(({ title }) => title).join());
      const direction = sort === undefined ? '' : ' DESC';
      const text = sent[0]!.replaceAll(/\s+/g, ' ');
      const where = 'WHERE "t"."owner_id" BETWEEN $1::uuid AND $2::uuid';
      expect(text).toContain(`${where} ORDER BY t."owner_id"${direction}, "t"."id"${direction} LIMIT`);
    }
    expect(titles).toEqual(['t0,t1,t2', 't2,t1,t0']);
  });

  it('a page of the range of one filter leaves no other test to an index', async () => {
    const fields = world.schema.collections.get('notes')!.fields;
    const exact = [
      { kind: 'field', field: fields.get('status')!, value: 'draft' },
      { kind: 'field', field: fields.get('title')!, value: 'rare' },
    ] as const;
    const watched = watchedReads(db, ({ text }) => sent.push(text));
    const choosesWay: ChoosesWay = ({ filters }) => ({ kind: 'range', of: filters[0]! });
    sent.length = 0;
    await createRecords(watched, world.schema, { choosesWay }).list(ann.ask('notes'), { exact, limit: 5, offset: 0 });
    expect(sent.join()).toMatch(/"status" BETWEEN \$1::text AND \$2::text AND \("t"."title" = \$3::text\) IS TRUE/);
  });

  it('the planner chooses by the statistics of the database, which load in the background', async () => {
    await db.run(raw('ANALYZE'));
    const statistics = new BackgroundStatistics(db, TABLES);
    expect(statistics.of('notes')).toBeUndefined();
    await statistics.refresh();
    const { rows, columns } = statistics.of('notes')!;
    expect(rows).toBe(40);
    expect(columns.get('status')).toMatchObject({ distinct: 3, nullShare: 0 });
    expect(columns.get('status')!.common.get('draft')).toBeCloseTo(14 / 40);
    expect(columns.get('owner_id')!.common.get(ann.id)).toBeCloseTo(8 / 40);
    expect(columns.get('team_id')!.nullShare).toBeCloseTo(0.25);
    expect(statistics.of('nothing')).toBeUndefined();
  });

  it('the planner works without statistics that cannot be read', async () => {
    const broken = { ...db, rows: () => Promise.reject(new Error('away')) } as unknown as Database;
    const statistics = new BackgroundStatistics(broken, TABLES);
    await statistics.refresh();
    expect(statistics.of('notes')).toBeUndefined();
  });
});

describe('the embedded database', () => {
  it('looks at tables that have grown, and only at those', async () => {
    const db = await openKind('embedded');
    try {
      await World.open(db, SCHEMA);
      const analysed: string[] = [];
      const run: Database['run'] = (statement) => {
        analysed.push(statement.text);
        return db.run(statement);
      };
      const statistics = new BackgroundStatistics({ ...db, run }, TABLES);
      const grow = (least: number, most: number) =>
        db.run(
          raw(`INSERT INTO teams (id, name, created_at, updated_at)
          SELECT gen_random_uuid(), 'team ' || n, now(), now() FROM generate_series(${least}, ${most}) n`),
        );
      await grow(1, 3_000);
      await statistics.refresh();
      expect([analysed, statistics.of('teams')?.rows]).toEqual([['ANALYZE "teams"'], 3_000]);
      await statistics.refresh();
      await grow(3_001, 3_100);
      await statistics.refresh();
      expect(analysed).toHaveLength(1);
      await grow(3_101, 9_000);
      await statistics.refresh();
      expect([analysed.length, statistics.of('teams')?.rows]).toEqual([2, 9_000]);
    } finally {
      await db.close();
    }
  });
});
