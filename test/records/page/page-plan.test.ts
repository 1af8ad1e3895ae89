/** Pages of one shape share a plan: it has the statements, and the answer, that each of them would make for itself. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Branch } from '../../../src/policy/branch.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { sortPathOf } from '../../../src/policy/filters/sort-path.ts';
import type { Row } from '../../../src/policy/types.ts';
import { Store } from '../../../src/records/access-context.ts';
import type { Expand } from '../../../src/records/expand.ts';
import type { CountKind } from '../../../src/records/page/count.ts';
import { isInOrderOfIndex } from '../../../src/records/page/keyset.ts';
import {
  askedPage,
  boundList,
  type ExactFilter,
  PagePlan,
  type PageValues,
  pageShape,
} from '../../../src/records/page/page-plan.ts';
import type { ChoosesWay } from '../../../src/records/page/page-question.ts';
import { ShapeMemory } from '../../../src/records/shape-memory.ts';
import { raw } from '../../../src/sql.ts';
import { Caller, schemaOf, type World } from '../../support/store-world.ts';

const IDS = ['a', 'b', 'c', 'd'].map((letter) => `00000000-0000-4000-8000-00000000000${letter}`);

const schema = schemaOf(`
roles: { member: , admin: { includes: [member] } }
register: { roles: [member] }
collections:
  users:
    fields: { level: int }
    relations:
      home: { kind: belongs_to, collection: teams }
      other: { kind: belongs_to, collection: teams }
    access: { view: true }
  teams:
    distribute: reference
    fields: { name: string }
    access: { view: true }
  tags:
    distribute: reference
    fields: { label: string, size: int }
    access: { view: [{ roles: [admin] }, { when: '@record.label = @request.query.label' }] }
  documents:
    fields:
      title: { type: string, search: true }
      score: { type: int, index: true }
      rank: { type: int, required: true, index: true }
      kind: { type: string, required: true }
      secret: { type: string, access: { read: [{ roles: [admin] }, { when: '@record.owner = @request.auth.id' }] } }
    relations:
      owner: { kind: belongs_to, collection: users }
      editor: { kind: belongs_to, collection: users }
      tags: { kind: many_to_many, collection: tags }
      labels: { kind: many_to_many, collection: tags }
      notes: { kind: has_many, collection: notes, via: document }
      cover: { kind: has_one, collection: covers, via: document }
    access:
      list:
        - roles: [admin]
        - when: '@record.owner = @request.auth.id and @record.score in [1, 2, 3]'
        - when: '@record.editor = @request.auth.id or @record.kind in @request.query.kinds'
      read: [{ roles: [admin] }, { when: '@record.owner = @request.auth.id or @record.score < @request.auth.level' }]
      update: [{ roles: [admin] }, { when: '@record.owner = @request.auth.id and @next.kind = "open"' }]
      delete: '@record.owner = @request.auth.id'
  notes:
    fields: { text: string }
    relations:
      document: { kind: belongs_to, collection: documents, access: { read: [{ when: '@record.text != @request.query.label' }] } }
    access: { view: '@record.text = @request.query.label' }
  covers:
    fields: { caption: string }
    relations: { document: { kind: belongs_to, collection: documents } }
    access: { view: [{ roles: [admin] }, { when: '@record.caption = @request.query.label' }] }
  papers:
    distribute: { by: team, lists: filtered }
    fields: { title: string, rank: { type: int, required: true, index: true } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access: { view: '@record.team = @request.auth.home or @record.team = @request.auth.other' }
`);

const id = fc.constantFrom(...IDS);
const orNone = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const mostly = <T>(plain: T, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(plain) }, { weight: 1, arbitrary: other });

const FILTERS = [
  ['score > $from', { from: 1 }],
  ['score > $from', { from: 2 }],
  ['score > $from', { from: null }],
  ['score < $from', { from: 1 }],
  ['title = "x"', {}],
  ['title = "y"', {}],
  ['secret = $word', { word: 'x' }],
  ['any(tags as t, t.label = $word)', { word: 'x' }],
  ['kind in $all', { all: ['a', 'b'] }],
  ['kind in $all', { all: ['a'] }],
  ['kind in $all', { all: [] }],
  ['any(notes as n, n.document.score = $from)', { from: 1 }],
] as const;
const SORTS = [
  'id',
  'score',
  'rank',
  'kind',
  'secret',
  'owner.level',
  'editor.level',
  'owner.home.name',
  'cover.caption',
];
const MEMBERS = ['title', 'score', 'secret', 'owner', 'cover'];

const asked = fc.record({
  collection: fc.constantFrom('documents', 'documents', 'documents', 'papers'),
  exact: mostly<readonly string[]>([], fc.subarray(['title', 'score', 'owner', 'tags', 'labels', 'notes', 'cover'])),
  filter: mostly<number | undefined>(undefined, fc.nat(FILTERS.length - 1)),
  sort: mostly<readonly string[]>([], fc.subarray(SORTS, { maxLength: 2 })),
  descending: fc.boolean(),
  limit: fc.constantFrom(1, 9, 10, 20, 40, 200),
  offset: mostly(0, fc.constantFrom(1, 2, 11, 30)),
  /** The cells of a cursor's position; more than there are keys. */
  after: mostly<readonly boolean[] | undefined>(undefined, fc.array(fc.boolean(), { minLength: 3, maxLength: 3 })),
  members: mostly<readonly string[] | undefined>(undefined, fc.subarray(MEMBERS)),
  expands: mostly<readonly string[]>([], fc.subarray(['owner', 'cover', 'tags'])),
  count: mostly<CountKind>('none', fc.constantFrom<CountKind>('exact', 'estimated')),
  capabilities: mostly(false, fc.constant(true)),
  isBudgeted: mostly(false, fc.constant(true)),
  auth: fc.record({
    id,
    home: orNone(id),
    other: orNone(id),
    level: orNone(fc.integer()),
    roles: mostly<readonly string[]>(['member'], fc.constant(['member', 'admin'])),
  }),
  query: mostly<Readonly<Record<string, string>>>({}, fc.constantFrom<Row>({ label: 'x' }, { kinds: 'a' }) as never),
  way: fc.nat(4),
});
type Asked = typeof asked extends fc.Arbitrary<infer A> ? A : never;
/** A request, and one that differs in one part at most. */
const pair = fc.tuple(asked, asked, fc.nat()).map(([one, other, n]): readonly Asked[] => {
  const part = Object.keys(one)[n % Object.keys(one).length] as keyof Asked;
  return [one, { ...one, [part]: other[part] }];
});

const PLAIN: Asked = {
  collection: 'documents',
  exact: [],
  filter: undefined,
  sort: [],
  descending: false,
  limit: 20,
  offset: 0,
  after: undefined,
  members: undefined,
  expands: [],
  count: 'none',
  capabilities: false,
  isBudgeted: false,
  auth: { id: IDS[0]!, home: undefined, other: undefined, level: 1, roles: ['member'] },
  query: {},
  way: 0,
};
/** Pairs that chance makes too seldom. */
const PAIRS: readonly (readonly [Partial<Asked>, Partial<Asked>])[] = [
  [{ sort: ['owner.level'] }, { sort: ['editor.level'] }],
  [
    { sort: ['score'], after: [true, true] },
    { sort: ['score'], after: [false, true] },
  ],
  [
    { sort: ['score'], limit: 9, offset: 1 },
    { sort: ['score'], limit: 9, offset: 2 },
  ],
  [{ way: 1 }, { way: 2 }],
  [
    { way: 3, sort: ['score'], after: [true, true] },
    { way: 3, sort: ['score'], after: [false, true] },
  ],
  [{}, { filter: FILTERS.length - 1, query: { label: 'x' }, capabilities: true }],
];

const lastOf = (branch: Branch): Branch => branch.alternatives.at(-1) ?? branch;
const WAYS: readonly ChoosesWay[] = [
  () => undefined,
  ({ branches }) => branches && { kind: 'branches', branches },
  ({ branches }) => branches && { kind: 'branches', branches: branches.map(lastOf), walk: 2 },
  () => ({ kind: 'gathered', by: 'all', walk: 3 }),
  () => ({ kind: 'gathered', by: 'filters', isOrdered: true }),
  () => ({ kind: 'gathered', by: 'all', walk: 3, longWalk: 5 }),
  ({ branches }) => branches && { kind: 'branches', branches, walk: 2, longWalk: 4 },
];

const VALUES: Row = { title: 'x', score: 1 };

function exactOf(collection: string, name: string, id: string): ExactFilter {
  const { fields, relations } = schema.collections.get(collection)!;
  const field = fields.get(name);
  if (field !== undefined) return { kind: 'field', field, value: VALUES[name] as string };
  const relation = relations.get(name)!;
  if (relation.kind === 'belongs_to') return { kind: 'belongs_to', relation, value: id };
  return relation.kind === 'has_one' ? { kind: 'has_one', relation, id } : { kind: 'any', relation, id };
}

/** The request, and the position of its cursor. */
function requestOf({ collection, ...given }: Asked) {
  const isPaper = collection === 'papers';
  const exact = isPaper ? [] : given.exact;
  const filter = isPaper ? undefined : given.filter;
  const sort = given.sort.filter((text) => !isPaper || text === 'rank' || text === 'id');
  const { relations } = schema.collections.get(collection)!;
  const sorting = sort.map((text) => {
    const path = sortPathOf(text, collection, schema);
    if (typeof path === 'string') throw new Error(path);
    return { path, descending: given.descending };
  });
  const [text, params] = filter === undefined ? [] : FILTERS[filter]!;
  const compiled = text === undefined ? undefined : compileFilter(text, { catalog: schema, collection, params });
  expect(compiled?.issues ?? []).toEqual([]);
  const cells = given.after?.map((isPresent, i) => (isPresent ? `${i}` : null));
  const keys = sort.includes('id') ? sort.indexOf('id') + 1 : sort.length + 1;
  // No row lacks an id, which is the last key.
  const position = cells && [...cells.slice(0, keys - 1), IDS[3]!];
  const { limit, offset, count, capabilities, isBudgeted } = given;
  const expands: Expand[] = given.expands.flatMap((name) => {
    const relation = relations.get(name);
    return relation === undefined ? [] : [{ relation, expands: [] }];
  });
  const request = {
    exact: exact.map((name, i) => exactOf(collection, name, IDS[(given.limit + i) % IDS.length]!)),
    filter: compiled?.filter,
    sort: sorting,
    members: given.members && new Set(given.members),
    expands,
    limit,
    offset,
    count,
    capabilities,
    isBudgeted,
  };
  return { request, position };
}

/** All that a plan gives. */
const printed = ({ statement, source, keyset, view, from, capabilities, unindexed }: PagePlan, values: PageValues) => ({
  statements: [statement, source].map((form) => {
    const made = form?.fill(values);
    return { text: made?.text, params: made?.params };
  }),
  keys: keyset.positionOf(Array.from({ length: 9 }, (_, i) => `${i}`)),
  json: view.json(Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? '1' : 't'))),
  from,
  width: capabilities?.width,
  unindexed,
});

test('a page of a known shape has the statements that it would make for itself', () => {
  const db = { statementInTime: raw('IN_TIME') } as unknown as Store['db'];
  const stores = WAYS.map((choosesWay) => new Store(db, schema, { choosesWay }));
  // The choice of a way is a part of the shape, so all ways share a memory.
  const memory = new ShapeMemory<PagePlan>(({ text }) => text);
  const planOf = (given: Asked): PagePlan | undefined => {
    const store = stores[given.way]!;
    const access = new Caller({ schema } as World, given.auth).ask(given.collection, { query: given.query });
    const { request, position } = requestOf(given);
    const endsEarly = isInOrderOfIndex(store, access, request.sort);
    const page = askedPage(store, access, { bound: boundList(store, access, request), position, endsEarly });
    if (page.permit.verdict === 'deny') return undefined;
    const shape = pageShape(access.collection, page);
    const { plan, answers } = memory.planOf(shape, access, (placed) => new PagePlan(store, placed, page));
    // With the access of the request itself, the caller's permits print their values.
    const own = new PagePlan(store, access, page);
    expect(printed(plan, { page, answers })).toEqual(printed(own, { page, answers: [] }));
    return plan;
  };
  let [shared, apart] = [0, 0];
  fc.assert(
    fc.property(pair, (requests) => {
      const [one, other] = requests.map(planOf);
      if (one === undefined || other === undefined) return;
      if (one === other) shared++;
      else apart++;
    }),
    {
      numRuns: 1_000,
      examples: PAIRS.map((parts): [readonly Asked[]] => [parts.map((part) => ({ ...PLAIN, ...part }))]),
    },
  );
  expect(shared).toBeGreaterThan(150);
  expect(apart).toBeGreaterThan(100);
});
