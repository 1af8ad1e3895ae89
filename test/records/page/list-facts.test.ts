// @module-tag partitions
/** The facts of exact filters decide parts of the list rule before the query. The answers stay the same. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { type SortPath, sortPathOf } from '../../../src/policy/filters/sort-path.ts';
import type { CountKind } from '../../../src/records/page/count.ts';
import type { ExactFilter } from '../../../src/records/page/page-plan.ts';
import type { PageQuestion } from '../../../src/records/page/page-question.ts';
import { createRecords } from '../../../src/records/records.ts';
import { type Caller, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const SCHEMA = `
roles: { member: {} }
register: { roles: [member] }
collections:
  notes:
    fields:
      title: { type: string, required: true, max: 80 }
      status: { type: string, required: true, enum: [draft, published], default: draft }
      score: int
      secret: { type: string, max: 80, access: { read: '@record.owner = @request.auth.id' } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access:
      view: '@record.status = "published" or @record.owner = @request.auth.id or @record.secret = "open"'
      create: true
`;

describe.each(KINDS)('exact filters (%s)', (kind) => {
  let db: Database;
  let world: World;
  let ann: Caller;
  let bob: Caller;
  /** Statements that read lists. */
  const sent: string[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    const watched = watchedReads(db, ({ text }) => sent.push(text));
    world = await World.open(watched, SCHEMA);
    [ann, bob] = [await world.user('ann@example.org'), await world.user('bob@example.org')];
    await ann.create('notes', { title: 'a draft', score: 1, secret: 'shut' });
    await ann.create('notes', { title: 'a published', status: 'published', secret: 'open' });
    await bob.create('notes', { title: 'b draft', score: 1, secret: 'open' });
    await bob.create('notes', { title: 'b published', status: 'published', score: 2 });
  });
  afterAll(() => db?.close());

  const notes = () => world.schema.collections.get('notes')!;
  const field = (name: string, value: string | number): ExactFilter => ({
    kind: 'field',
    field: notes().fields.get(name)!,
    value,
  });
  const owner = (id: string): ExactFilter => {
    const relation = notes().relations.get('owner')!;
    if (relation.kind !== 'belongs_to') throw new Error('owner is a belongs_to');
    return { kind: 'belongs_to', relation, value: id };
  };
  const listed = async (caller: Caller, filters: readonly ExactFilter[]) => {
    sent.length = 0;
    const { data, ...page } = await caller.list('notes', { exact: filters, count: 'exact' });
    return { titles: data.map(({ title }: { title: string }) => title), ...page };
  };
  const all = (titles: readonly string[]) => ({ titles, hasMore: false, total: titles.length });

  it('take the branches that they contradict out of the statement, and of the count', async () => {
    expect(await listed(ann, [field('status', 'draft')])).toEqual(all(['a draft', 'b draft']));
    expect(sent).toHaveLength(2);
    for (const text of sent) expect(text).not.toContain('published');
    expect(await listed(ann, [field('score', 1)])).toEqual(all(['a draft', 'b draft']));
    for (const text of sent) expect(text).toContain('published');
  });

  it('make the rule true where they are what it asks', async () => {
    expect(await listed(ann, [field('status', 'published')])).toEqual(all(['a published', 'b published']));
    expect(await listed(ann, [owner(ann.id)])).toEqual(all(['a draft', 'a published']));
    for (const text of sent) expect(text).not.toContain(' OR ');
  });

  it('say nothing by a member that is hidden in some records', async () => {
    expect(await listed(ann, [field('status', 'draft'), owner(bob.id), field('secret', 'shut')])).toEqual(all([]));
    expect(await listed(ann, [field('secret', 'open')])).toEqual(all(['a published']));
    expect(await listed(bob, [field('secret', 'open')])).toEqual(all(['b draft']));
    for (const text of sent) expect(text).toContain('published');
  });

  it('the planner does not estimate filters on a member that some records hide', async () => {
    const questions: PageQuestion[] = [];
    const choosesWay = (question: PageQuestion): undefined => void questions.push(question);
    const records = createRecords(world.db, world.schema, { choosesWay });
    const exact = [field('score', 1), field('secret', 'shut')];
    await records.list(ann.ask('notes'), { exact, limit: 5, offset: 0 });
    expect(questions.map(({ filters }) => filters)).toEqual([[{ column: 'score', values: [1] }]]);
    await records.list(ann.ask('notes'), { exact: [...exact, { kind: 'id', value: bob.id }], limit: 5, offset: 0 });
    expect(questions).toHaveLength(1);
  });

  it('leave an order without the fields of which they require one value', async () => {
    const pathOf = (name: string) => sortPathOf(name, 'notes', world.schema) as SortPath;
    const sort = ['status', 'score'].map((name) => ({ path: pathOf(name), descending: true }));
    const pages = async (sorts: typeof sort) => {
      const texts: string[] = [];
      for (let after: string | undefined, page = 0; page === 0 || after !== undefined; page++) {
        sent.length = 0;
        const cursors = { query: '', after };
        const exact = [field('status', 'draft')];
        const list = { exact, sort: sorts, limit: 1, offset: 0, cursors };
        const { json, nextCursor } = await world.records.list(bob.ask('notes'), list);
        for (const text of sent) expect(text).not.toContain('ORDER BY "_k0"');
        texts.push(String(json));
        after = nextCursor;
      }
      return texts.flatMap((text) => JSON.parse(text).map(({ title }: { title: string }) => title));
    };
    await bob.create('notes', { title: 'b draft without a score' });
    expect(await pages(sort)).toEqual(['b draft', 'b draft without a score']);
    expect(await pages(sort.slice(0, 1))).toEqual(['b draft', 'b draft without a score']);
  });

  it('that contradict the whole rule ask the database nothing', async () => {
    const closed = await World.open(
      { ...world.db, replicaFor: world.db.replicaFor } as Database,
      SCHEMA.replace(' or @record.secret = "open"', ''),
    );
    const [carol] = [await closed.user(`carol-${kind}@example.org`)];
    sent.length = 0;
    const exact = [field('status', 'draft'), owner(bob.id)];
    expect(await carol.list('notes', { exact, count: 'exact' })).toEqual({ data: [], hasMore: false, total: 0 });
    expect(await carol.list('notes', { exact })).toEqual({ data: [], hasMore: false });
    const params = { id: bob.id };
    const place = { catalog: closed.schema, collection: 'notes', params };
    const { filter } = compileFilter('status = "draft" and owner = $id and score > 0', place);
    const request = { filter, limit: 10, offset: 0, isQuery: true };
    const asked = (count: CountKind) =>
      closed.records.list(carol.ask('notes'), { ...request, count, cursors: { query: '' } });
    const none = { json: '[]', hasMore: false };
    expect(await asked('none')).toEqual(none);
    expect(await asked('exact')).toEqual({ ...none, total: 0 });
    expect(await asked('estimated')).toEqual({ ...none, total: 0, totalIsEstimate: false });
    expect(sent).toEqual([]);
    await expect(
      closed.records.list(carol.ask('notes'), { ...request, cursors: { query: '', after: 'AAAA' } }),
    ).rejects.toThrow('the cursor is not one of this query');
  });

  it.each(['none', 'exact', 'estimated'] as const)(
    'choose one place to read a query from (count %s)',
    async (count) => {
      const callers: string[] = [];
      const replicaFor: Database['replicaFor'] = (callerId) => {
        callers.push(callerId);
        return world.db.replicaFor(callerId);
      };
      const watched = await World.open({ ...world.db, replicaFor } as Database, SCHEMA);
      const caller = await watched.user(`dora-${kind}-${count}@example.org`);
      callers.length = 0;
      const request = { limit: 10, offset: 0, count, isQuery: true };
      const { json } = await watched.records.list(caller.ask('notes'), request);
      expect([JSON.parse(String(json)).length, callers]).toEqual([3, [caller.id]]);
    },
  );
});
