// @module-tag long
/** Queries reveal nothing about hidden records, in any form; and they have a limit of cost. */
import { beforeAll, describe, expect, test } from 'vitest';
import { param, raw, type Sql, sql } from '../../../src/sql.ts';
import type { Answer } from '../../support/client.ts';
import { outcomeOf, saidBy } from '../../support/records.ts';
import { describeRoutesOnOne, type User } from '../../support/service.ts';

/** Bob reads no secret team, no hidden note, and no salary but his own. */
const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
limits: { query_time: 1s }
collections:
  users:
    fields: { salary: { type: int, access: { read: '@record.id = @request.auth.id' } } }
    access: { list: true, read: true, update: '@record.id = @request.auth.id' }
  teams:
    fields: { name: { type: string, required: true }, secret: { type: bool, required: true, default: false } }
    relations: { tasks: { kind: has_many, collection: tasks, via: team } }
    access: { view: '@record.secret = false or @request.auth.roles contains "admin"', create: true, update: '@next.id is not null' }
  notes:
    fields: { text: { type: string, required: true }, hidden: { type: bool, required: true, default: false } }
    relations: { task: { kind: belongs_to, collection: tasks, required: true } }
    access: { view: '@record.hidden = false or @request.auth.roles contains "admin"', create: true }
  tags:
    fields: { label: { type: string, required: true }, hidden: { type: bool, required: true, default: false } }
    access: { view: '@record.hidden = false or @request.auth.roles contains "admin"', create: true }
  tasks:
    fields: { title: { type: string, required: true }, rank: { type: int, index: true } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      team: { kind: belongs_to, collection: teams }
      parent: { kind: belongs_to, collection: tasks }
      notes: { kind: has_many, collection: notes, via: task }
      tags: { kind: many_to_many, collection: tags }
    access: { list: true, read: true, create: true, update: true }
`;

describeRoutesOnOne(
  'the visibility of queries',
  (service) => {
    let root: User;
    let bob: User;
    let secret: string;

    const make = async (user: User, collection: string, data: object): Promise<string> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const query = (body: object, user = bob, collection = 'tasks'): Promise<Answer> =>
      user.client.post(`/api/${collection}/query`, body);
    const found = async (filter: string, params: object = {}, user = bob): Promise<unknown> => {
      const { body, text } = await query({ filter, params, sort: ['title'] }, user);
      return body.data?.map(({ title }: { title: string }) => title).join('') ?? text;
    };

    beforeAll(async () => {
      [root, bob] = await Promise.all([service.user('admin'), service.user()]);
      await root.client.patch(`/api/users/${root.id}`, { data: { salary: 100 } });
      await bob.client.patch(`/api/users/${bob.id}`, { data: { salary: 10 } });
      secret = await make(root, 'teams', { name: 'Alpha', secret: true });
      const open = await make(root, 'teams', { name: 'Beta' });
      const tags = [await make(root, 'tags', { label: 'x', hidden: true }), await make(root, 'tags', { label: 'y' })];
      const a = await make(root, 'tasks', { title: 'a', rank: 1, team: secret, tags: { set: [tags[0]!] } });
      const b = await make(root, 'tasks', {
        title: 'b',
        owner: bob.id,
        rank: 2,
        team: open,
        parent: a,
        tags: { set: tags },
      });
      await make(root, 'tasks', { title: 'c', parent: b });
      await make(root, 'notes', { task: a, text: 'n', hidden: true });
      await make(root, 'notes', { task: b, text: 'n', hidden: true });
      await make(root, 'notes', { task: b, text: 'm' });
    });

    test.each<[filter: string, bobs: string, roots: string]>([
      ['team.name = "Alpha"', '', 'a'],
      ['team.name != "Beta"', '', 'a'],
      ['not (team.name = "Beta")', '', 'a'],
      ['team.name is null', 'ac', 'c'],
      ['team.id is null', 'ac', 'c'],
      ['team is null', 'c', 'c'],
      ['team is not null and team.id is null', 'a', ''],
      ['team.secret', '', 'a'],
      ['any(team.tasks as t, t.rank = 1)', '', 'a'],
      ['none(team.tasks as t, t.rank = 2)', '', 'a'],
      ['count(team.tasks) >= 0', 'b', 'ab'],
      ['any(notes as n, n.text = "n")', '', 'ab'],
      ['none(notes as n, n.text = "n")', 'abc', 'c'],
      ['all(notes as n, n.text = "m")', 'abc', 'c'],
      ['count(notes) = 0', 'ac', 'c'],
      ['count(notes) = 2', '', 'b'],
      ['count(notes as n, n.hidden) > 0', '', 'ab'],
      ['any(tags as t, t.label in ["x"])', '', 'ab'],
      ['count(tags) = 1', 'b', 'a'],
      ['any(tags as t, true)', 'b', 'ab'],
      ['parent.team.name = "Alpha"', '', 'b'],
      ['any(ancestors(parent by parent) as p, p.team.name = "Alpha")', '', 'bc'],
      ['owner.salary > 0', 'b', 'ac'],
      ['owner.salary is null', 'ac', 'b'],
      ['not (owner.salary = 100)', 'b', ''],
      ['owner.salary in [10, 100]', 'b', 'ac'],
      ['any(parent.notes as n, n.task.owner.salary >= 10)', 'c', 'b'],
    ])('%s', async (filter, bobs, roots) => {
      expect([await found(filter), await found(filter, {}, root)]).toEqual([bobs, roots]);
    });

    test('a hidden element is not there for contains', async () => {
      const [hidden] = (await query({ sort: ['label'] }, root, 'tags')).body.data;
      expect(await found('tags contains $t', { t: hidden.id })).toBe('');
      expect(await found('tags contains $t', { t: hidden.id }, root)).toBe('ab');
      expect(await found('team = $t', { t: secret })).toBe('a');
    });

    test('sorts and their cursors', async () => {
      const order = async (sort: string, user: User): Promise<string> => {
        let titles = '';
        let cursor: string | null = null;
        do {
          const { body } = await query({ sort: [sort, 'title'], limit: 1, cursor }, user);
          for (const { title } of body.data) titles += title;
          cursor = body.page.next_cursor;
        } while (cursor !== null);
        return titles;
      };
      expect([await order('team.name', bob), await order('team.name', root)]).toEqual(['bac', 'abc']);
      expect([await order('-team.id', bob), await order('owner.salary', bob)]).toEqual(['bac', 'bac']);
      expect([await order('owner.salary', root), await order('-parent.team.name', root)]).toEqual(['acb', 'cba']);
      expect(await order('-parent.team.name', bob)).toBe('cab');
    });

    test('expands, counts and aggregates', async () => {
      const { body } = await query({
        sort: ['title'],
        expand: { team: true, notes: { fields: ['text'] }, tags: { fields: ['label'] } },
      });
      const shown = body.data.map(({ expand }: Answer['body']) => [
        expand.team?.name ?? null,
        expand.notes.length,
        expand.tags.map(({ label }: { label: string }) => label).join(),
      ]);
      expect(shown).toEqual([
        [null, 0, ''],
        ['Beta', 1, 'y'],
        [null, 0, ''],
      ]);
      expect((await query({ filter: 'team.name = "Alpha"', count: 'exact' })).body.page.total).toBe(0);
      const sums = await bob.client.post('/api/users/aggregate', {
        measures: { s: 'sum(salary)', n: 'count', m: 'max(salary)' },
      });
      expect(sums.body.data).toEqual([{ s: 10, n: 2, m: 10 }]);
      const groups = await bob.client.post('/api/users/aggregate', { group_by: ['salary'], measures: { n: 'count' } });
      expect(groups.body.data).toEqual([
        { salary: 10, n: 1 },
        { salary: null, n: 1 },
      ]);
    });

    /** The same questions to two worlds that differ only in what is hidden. */
    test('answers do not change with what is hidden', async () => {
      const questions = [
        { filter: 'team.name starts with "A" or owner.salary > 50', count: 'exact' },
        {
          sort: ['-team.name', 'owner.salary'],
          limit: 2,
          expand: { team: true, notes: { sort: ['-text'] }, tags: true },
          count: 'estimated',
        },
        { filter: 'count(notes) < 2 and none(tags as t, t.label = "x")', sort: ['parent.team.name'] },
      ];
      const ask = async (): Promise<unknown> => {
        const answers = await Promise.all(questions.map((each) => query(each)));
        const groups = await bob.client.post('/api/tasks/aggregate', {
          filter: 'team.name is null',
          group_by: ['team'],
          measures: { n: 'count' },
        });
        return [...answers, groups].map(saidBy);
      };
      const before = await ask();
      expect((await root.client.patch(`/api/teams/${secret}`, { data: { name: 'Zulu' } })).status).toBe(200);
      await root.client.patch(`/api/users/${root.id}`, { data: { salary: 1 } });
      const { data } = (await query({ filter: 'title = "a"' }, root)).body;
      for (const text of ['n', 'zz', 'm']) await make(root, 'notes', { task: data[0].id, text, hidden: true });
      const after = await ask();
      // The user who was changed shows when.
      const stamps = /"updated_at":"[^"]*"/g;
      expect(JSON.stringify(after).replaceAll(stamps, '')).toBe(JSON.stringify(before).replaceAll(stamps, ''));
    });

    // The embedded database goes by estimates, and knows nothing of the rows that it was just given.
    describe.skipIf(service.kind === 'embedded')('the cost of a query', () => {
      test('the service limits a slow query, and plain lists go on', async () => {
        await service.app.db.write(rowsOf(12_000, bob.id));
        await service.app.db.write(raw('ANALYZE tasks'));
        // Every title against every other.
        const slow = query({
          filter: 'count(owner.own as o, o.title contains title and o.title starts with "zzz") >= 5',
          count: 'exact',
        });
        const list = bob.client.get('/api/tasks?limit=1');
        expect((await list).status).toBe(200);
        expect(outcomeOf(await slow)).toEqual([400, 'query_too_expensive']);
        expect((await query({ filter: 'title = "a"' })).status).toBe(200);
      });

      test('an estimate does not count what is hidden', async () => {
        const counted = async (body: object, user = bob): Promise<unknown> =>
          (await query({ ...body, count: 'estimated', limit: 1 }, user)).body.page;
        const all = (await counted({})) as { total: number; total_is_estimate: boolean };
        expect(all.total_is_estimate).toBe(true);
        expect(all.total).toBeGreaterThan(11_000);
        // A related record that may be hidden takes part: at least.
        expect(await counted({ filter: 'team.name is null' })).toMatchObject({
          total: 10_000,
          total_is_estimate: true,
        });
        expect(await counted({ filter: 'rank = 1' })).toMatchObject({ total: 1, total_is_estimate: false });
      });
    });
  },
  {
    schema: SCHEMA.replace(
      "read: '@record.id = @request.auth.id' } } }",
      "read: '@record.id = @request.auth.id' } } }\n    relations: { own: { kind: has_many, collection: tasks, via: owner } }",
    ),
  },
);

const rowsOf = (rows: number, owner: string): Sql => sql`
  INSERT INTO tasks (id, created_at, updated_at, title, owner_id)
  SELECT gen_random_uuid(), now(), now(), 'task ' || n, ${param('uuid', owner)}
    FROM generate_series(1, ${param('int8', rows)}) AS n
  RETURNING 1`;
