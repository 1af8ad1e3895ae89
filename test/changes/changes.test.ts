// @module-tag long
// @module-tag partitions
/** Streams of changes over HTTP: a subscriber learns of exactly those changes that its own list would show. */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { importRecords } from '../../src/records/transfer/import-records.ts';
import { raw } from '../../src/sql.ts';
import { outcomeOf } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';
import { until } from '../support/until.ts';
import { FeedClient, type ReadEvent } from './feed-client.ts';

const SCHEMA = `
roles: [member, editor]
register: { roles: [member] }
limits: { feeds: { user: 5 } }
collections:
  users: { access: { view: true } }
  teams:
    fields: { name: string }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
    access: { view: true, create: true, update: true, delete: true }
  memberships:
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true }
    access: { view: true, create: true, delete: true }
  notes:
    changes: true
    fields:
      title: { type: string, required: true }
      open: bool
      secret: { type: string, access: { read: '@record.owner = @request.auth.id' } }
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      cover: { kind: has_one, collection: covers, via: note }
      tags: { kind: many_to_many, collection: tags }
    access:
      view: '@record.owner = @request.auth.id or @record.open = true'
      create: true
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
  tags:
    changes: true
    fields: { name: string, hidden: { type: bool, default: false }, mark: { type: string, access: { read: '@record.name = "open"' } } }
    relations: { labels: { kind: many_to_many, collection: labels } }
    access: { view: '@record.hidden = false', create: true, update: true }
  labels: { access: { view: true } }
  covers:
    fields: { hidden: bool }
    relations: { note: { kind: belongs_to, collection: notes, on_delete: cascade } }
    access: { view: '@record.hidden != true', create: true, update: true, delete: true }
  tasks:
    changes: true
    fields: { name: string }
    relations: { team: { kind: belongs_to, collection: teams, on_delete: cascade } }
    access:
      view: 'any(@record.team.memberships as m, m.user = @request.auth.id)'
      create: true
      update: true
      delete: true
  drafts:
    changes: true
    fields: { name: string }
    access: { list: [{ roles: [editor] }], read: [{ roles: [editor] }], create: true }
`;

/** The events as a reader sees them that shares nothing with ours. */
function eventsOf(text: string): readonly ReadEvent[] {
  const events: ReadEvent[] = [];
  const onEvent = ({ id, event, data }: EventSourceMessage): void =>
    void events.push({ id: id!, type: event!, data: JSON.parse(data) });
  const onError = (error: Error): never => {
    throw error;
  };
  createParser({ onEvent, onError }).feed(text);
  return events;
}

describeOnBoth(
  'streams of changes',
  (service) => {
    let ann: User;
    let bob: User;
    const open: FeedClient[] = [];
    const watch = (user: User, path: string, init: ConstructorParameters<typeof FeedClient>[2] = {}): FeedClient => {
      const feed = new FeedClient(user.client, path, init);
      open.push(feed);
      return feed;
    };
    const ready = async (user: User, path = '/api/notes/changes', init = {}): Promise<FeedClient> => {
      const feed = watch(user, path, init);
      await feed.until('ready');
      return feed;
    };
    const make = async (user: User, collection: string, data: object): Promise<string> => {
      const { body, status, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201 && status !== 200) throw new Error(text);
      return body.data.id;
    };
    const patch = (user: User, path: string, data: object) => user.client.patch(`/api/${path}`, { data });

    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user(), service.user()]);
    });
    afterEach(() => {
      for (const feed of open.splice(0)) {
        expect(eventsOf(feed.text.join(''))).toEqual(feed.events);
        feed.close();
      }
    });

    test('a record enters, changes and leaves as it does in the list of each subscriber', async () => {
      const [own, other] = await Promise.all([ready(ann), ready(bob)]);
      const id = await make(ann, 'notes', { title: 'a', secret: 's' });
      const [[type, data]] = (await own.until('enter')) as [[string, { record: object }]];
      expect([type, data.record]).toEqual(['enter', (await ann.client.get(`/api/notes/${id}`)).body.data]);
      await patch(ann, `notes/${id}`, { open: true });
      const shown = await other.until('enter');
      expect(shown).toEqual([['enter', { record: (await bob.client.get(`/api/notes/${id}`)).body.data }]]);
      expect(JSON.stringify(shown)).not.toContain('secret');
      await patch(ann, `notes/${id}`, { title: 'b', open: false });
      expect(await other.until('leave')).toEqual([['leave', { id }]]);
      await patch(ann, `notes/${id}`, { title: 'c' });
      const changes = [...(await own.until('change')), ...(await own.until('change')), ...(await own.until('change'))];
      expect(changes.map(([each]) => each)).toEqual(['change', 'change', 'change']);
      await ann.client.delete(`/api/notes/${id}`);
      expect(await own.until('leave')).toEqual([['leave', { id }]]);
      expect(await other.rest()).toEqual([]);
      expect(other.text.join('')).not.toMatch(/"[sbc]"/);
    });

    test('a commit is one event, and what is undone is none', async () => {
      const feed = await ready(ann);
      const id = await make(ann, 'notes', { title: 'a' });
      await feed.until('enter');
      const operations = ['b', 'c'].map((title) => ({ op: 'update', collection: 'notes', id, data: { title } }));
      await ann.client.post('/api/batch', { operations });
      await ann.client.post('/api/batch', {
        operations: [operations[0], { op: 'update', collection: 'notes', id, data: { title: 1 } }],
      });
      await service.app.db.run(raw(`UPDATE notes SET title = 'by a program' WHERE id = '${id}'`));
      const changes = (await feed.until('change')).concat(await feed.until('change', 3_000));
      expect(changes.map(([, data]) => (data as { record: { title: string } }).record.title)).toEqual([
        'c',
        'by a program',
      ]);
    });

    test('a filter, fields and several feeds on one stream', async () => {
      const feed = watch(ann, '/api/changes', {
        body: {
          feeds: {
            plain: { collection: 'notes', filter: 'title starts with $it', params: { it: 'x' }, fields: ['title'] },
            tasks: { collection: 'tasks' },
          },
        },
      });
      await feed.until('ready');
      await feed.until('ready');
      const id = await make(ann, 'notes', { title: 'x1', secret: 's' });
      await make(ann, 'notes', { title: 'y' });
      expect(await feed.until('enter')).toEqual([['enter', { feed: 'plain', record: { id, title: 'x1' } }]]);
      await patch(ann, `notes/${id}`, { title: 'y' });
      expect(await feed.until('leave')).toEqual([['leave', { feed: 'plain', id }]]);
      const byQuery = await ready(ann, `/api/notes/changes?title=y`);
      await patch(ann, `notes/${id}`, { title: 'z' });
      expect(await byQuery.until('leave')).toEqual([['leave', { id }]]);
    });

    test('two equal feeds of one stream have ids of their own, and each resumes from its own or the other position', async () => {
      const equal = { collection: 'notes', fields: ['title'] };
      const several = (a: object, b: object) => watch(ann, '/api/changes', { body: { feeds: { a, b } } });
      const feed = several(equal, equal);
      for (const _ of ['a', 'b']) await feed.until('ready');
      const id = await make(ann, 'notes', { title: 'first' });
      for (const _ of ['a', 'b']) await feed.until('enter');
      expect(new Set(feed.events.map((each) => each.id)).size).toBe(4);
      feed.close();
      await patch(ann, `notes/${id}`, { title: 'second' });
      const [a, b] = feed.events.slice(-2).map((each) => each.id);
      for (const [since, other] of [
        [a, b],
        [b, a],
      ]) {
        const resumed = several({ ...equal, since }, { ...equal, since: other });
        for (const _ of ['a', 'b']) await resumed.until('ready');
        expect(resumed.events.map(({ type, data }) => [data.feed, type]).toSorted()).toEqual([
          ['a', 'change'],
          ['a', 'ready'],
          ['b', 'change'],
          ['b', 'ready'],
        ]);
        expect(new Set(resumed.events.map((each) => each.id)).size).toBe(4);
        resumed.close();
      }
    });

    test('a filter walks to logged records, as their reader sees them', async () => {
      const tag = await make(ann, 'tags', { name: 'a', mark: 'm' });
      const named = await ready(ann, '/api/notes/changes', { body: { filter: 'any(tags as t, t.mark = "m")' } });
      const linked = await ready(ann, `/api/notes/changes?tags_any=${tag}`);
      const id = await make(ann, 'notes', { title: 'tagged', tags: { set: [tag] } });
      // A link is a record that decides.
      for (const feed of [named, linked]) expect(await feed.until('reset')).toEqual([['reset', { reason: 'related' }]]);
      await patch(ann, `notes/${id}`, { title: 'a' });
      expect(await linked.until('change')).toMatchObject([['change', { record: { id } }]]);
      // The mark is hidden.
      expect(await named.rest()).toEqual([]);
      await patch(ann, `tags/${tag}`, { name: 'open' });
      expect(await named.until('reset')).toEqual([['reset', { reason: 'related' }]]);
      await patch(ann, `notes/${id}`, { title: 'b' });
      expect(await named.until('change')).toMatchObject([['change', { record: { id, title: 'b' } }]]);
      await linked.until('change');
      await patch(ann, `tags/${tag}`, { hidden: true });
      expect((await named.until('reset')).at(-1)).toEqual(['reset', { reason: 'related' }]);
      await linked.until('reset');
      await patch(ann, `notes/${id}`, { title: 'c' });
      expect([await named.rest(), await linked.rest()]).toEqual([[], []]);
    });

    test('a filter that reads a relation within itself lists again, and holds up nobody', async () => {
      const tags = await Promise.all(
        Array.from({ length: 40 }, (_, i) => make(ann, 'tags', { name: `t${i}`, mark: 'm' })),
      );
      const id = await make(ann, 'notes', { title: 'many', tags: { set: tags } });
      const within = (depth: number): string =>
        depth === 4
          ? 't1.name > t2.name and t2.name > t3.name and t3.name > t1.name'
          : `any(tags as t${depth}, ${within(depth + 1)})`;
      const filter = within(1);
      const feed = await ready(ann, '/api/notes/changes', { body: { filter } });
      await patch(ann, `notes/${id}`, { title: 'changed' });
      expect(await feed.until('reset')).toEqual([['reset', { reason: 'related' }]]);
      const asked = await ann.client.post('/api/_explain', { collection: 'notes', action: 'list', id, filter });
      expect([asked.status, asked.body.code]).toEqual([400, 'query_too_expensive']);
    });

    test('a member that joins or leaves changes its record', async () => {
      const [tag, feed] = [await make(ann, 'tags', { name: 'a' }), await ready(ann)];
      const id = await make(ann, 'notes', { title: 'a' });
      await feed.until('enter');
      for (const tags of [{ add: [tag] }, { remove: [tag] }]) {
        expect((await patch(ann, `notes/${id}`, { tags })).status).toBe(200);
        expect(await feed.until('change')).toMatchObject([['change', { record: { id } }]]);
      }
      expect(await feed.rest()).toEqual([]);
    });

    test('a position resumes a stream, and that of another feed starts it anew', async () => {
      const feed = await ready(ann);
      const id = await make(ann, 'notes', { title: 'a' });
      await feed.until('enter');
      const { position } = feed;
      feed.close();
      await patch(ann, `notes/${id}`, { title: 'b' });
      await patch(ann, `notes/${id}`, { title: 'c' });
      const gone = await make(ann, 'notes', { title: 'gone' });
      await ann.client.delete(`/api/notes/${gone}`);
      // The header counts before the query.
      const headers = { 'Last-Event-ID': position };
      const resumed = watch(ann, `/api/notes/changes?since=${feed.events[0]!.id}`, { headers });
      const events = await resumed.until('ready');
      expect(events.map(([type, data]) => [type, (data as { record?: { title: string } }).record?.title])).toEqual([
        ['change', 'b'],
        ['change', 'c'],
        ['leave', undefined],
        ['ready', undefined],
      ]);
      for (const [user, path] of [
        [bob, `/api/notes/changes?since=${position}`],
        [ann, `/api/notes/changes?title=a&since=${position}`],
        [ann, '/api/notes/changes?since=nothing'],
      ] as const) {
        const anew = watch(user, path);
        expect((await anew.until('ready'))[0]).toEqual(['reset', { reason: 'position' }]);
        expect(new Set(anew.events.map(({ id }) => id)).size).toBe(anew.events.length);
      }
    });

    test('a replay shows nothing that is hidden now', async () => {
      const feed = await ready(bob);
      const id = await make(ann, 'notes', { title: 'shown', open: true });
      await feed.until('enter');
      const { position } = feed;
      feed.close();
      await patch(ann, `notes/${id}`, { title: 'still shown' });
      await patch(ann, `notes/${id}`, { title: 'hidden', open: false });
      const resumed = watch(bob, `/api/notes/changes?since=${position}`);
      expect((await resumed.until('ready')).map(([type]) => type)).toEqual(['leave', 'ready']);
      expect(resumed.text.join('')).not.toMatch(/shown|hidden/);
    });

    test('a record that is hidden by now has one leave, whatever its commits were', async () => {
      const feed = await ready(bob);
      const before = feed.position;
      const id = await make(ann, 'notes', { title: 'draft' });
      for (const change of [{ open: true }, { title: 'renamed' }, { open: false }, { open: true }])
        await patch(ann, `notes/${id}`, change);
      const other = await make(ann, 'notes', { title: 'other', open: true });
      await feed.until('enter');
      await until('the other note', () => feed.events.some(({ data }) => data.record?.id === other));
      const between = feed.position;
      feed.close();
      for (const open of [false, true, false]) await patch(ann, `notes/${id}`, { open });
      for (const since of [before, between]) {
        const resumed = watch(bob, `/api/notes/changes?since=${since}`);
        const events = (await resumed.until('ready')).filter(([, data]) => (data as { id?: string }).id === id);
        expect(events).toEqual([['leave', { id }]]);
        expect(resumed.text.join('')).not.toMatch(/draft|renamed/);
        resumed.close();
      }
    });

    test('a has_one that moves changes the records that show it', async () => {
      const feed = await ready(ann);
      const [one, two] = [await make(ann, 'notes', { title: '1' }), await make(ann, 'notes', { title: '2' })];
      await feed.until('enter');
      await feed.until('enter');
      const cover = await make(ann, 'covers', { note: one, hidden: false });
      expect(await feed.until('change')).toMatchObject([['change', { record: { id: one, cover } }]]);
      await patch(ann, `covers/${cover}`, { note: two });
      const moved = [...(await feed.until('change')), ...(await feed.until('change'))];
      expect(moved.map(([, data]) => data)).toEqual(
        expect.arrayContaining([
          { record: expect.objectContaining({ id: one, cover: null }) },
          { record: expect.objectContaining({ id: two, cover }) },
        ]),
      );
      // Both changes have one place in the log: the first of them does not end it.
      const [first, second] = feed.events.slice(-2);
      const resumed = watch(ann, `/api/notes/changes?since=${first!.id}`);
      expect((await resumed.until('ready')).map(([, data]) => data)).toContainEqual(second!.data);
      expect(second!.id).not.toBe(first!.id);
      await make(ann, 'covers', { note: one, hidden: true });
      const last = await feed.until('change');
      expect(last).toMatchObject([['change', { record: { id: one, cover: null } }]]);
    });

    test('a record that decides visibility resets those whose list it changes', async () => {
      const team = await make(ann, 'teams', { name: 't' });
      const [feed, other] = [await ready(bob, '/api/tasks/changes'), await ready(ann, '/api/tasks/changes')];
      await make(ann, 'tasks', { name: 'a', team });
      expect(await feed.rest()).toEqual([]);
      await make(ann, 'memberships', { team, user: bob.id });
      expect(await feed.until('reset')).toEqual([['reset', { reason: 'related' }]]);
      // The rule compares the user of a membership with each caller.
      expect(await other.rest()).toEqual([]);
      await make(ann, 'tasks', { name: 'b', team });
      const entered = await feed.until('enter');
      // A membership that came while an earlier batch was decided resets once more in its own.
      expect(entered.filter(([type]) => type !== 'reset')).toMatchObject([['enter', { record: { name: 'b' } }]]);
      await ann.client.delete(`/api/teams/${team}`);
      const events = [...(await feed.until('reset'))].map(([type]) => type);
      expect(events).toEqual(['reset']);
    });

    describe('the caller', () => {
      test('an ended session ends its streams within a second', async () => {
        const user = await service.user();
        const feed = await ready(user);
        const began = performance.now();
        await user.client.post('/api/auth/logout');
        while (!feed.isOver && performance.now() - began < 3_000) await feed.rest(20);
        expect(performance.now() - began).toBeLessThan(1_000);
      });

      test('other roles reset a stream, and end it where the list would be denied', async () => {
        const [user, admin] = await Promise.all([service.user('editor'), service.user('admin')]);
        const [notes, drafts] = [await ready(user), await ready(user, '/api/drafts/changes')];
        const { status, text } = await patch(admin, `users/${user.id}`, { roles: { set: ['member'] } });
        expect([status, text]).toEqual([200, expect.anything()]);
        expect(await notes.until('reset')).toEqual([['reset', { reason: 'caller' }]]);
        await expect(drafts.until('anything')).rejects.toThrow();
        expect(drafts.isOver).toBe(true);
      });
    });

    test('an import is one entry, and its subscribers list again', async () => {
      const feed = await ready(ann);
      const { db, schema } = service.app;
      const importTo = (collection: string, member: string, values: readonly unknown[]) =>
        importRecords(db, {
          schema,
          collection: schema.collections.get(collection)!,
          now: '2026-11-27T00:00:00.000000Z',
          records: async function* () {
            for (const [i, value] of values.entries())
              yield { line: i + 1, isText: false, members: new Map([[member, value]]) };
          },
        });
      const [last] = await db.rows(raw('SELECT max(seq) FROM bylaw_changes'));
      await importTo('notes', 'title', ['n1', 'n2']);
      expect(await feed.until('reset')).toEqual([['reset', { reason: 'bulk' }]]);
      const [left] = await db.rows(
        raw(`SELECT source, id, count(*) FROM bylaw_changes WHERE seq > ${last![0]} GROUP BY 1, 2 HAVING id IS NULL`),
      );
      expect(left).toEqual(['notes', null, '1']);
      expect(await feed.rest()).toEqual([]);
      // Its records may be the partners of others.
      await importTo('covers', 'hidden', [false]);
      expect(await feed.until('reset')).toEqual([['reset', { reason: 'bulk' }]]);
    });

    test('the door is that of the list', async () => {
      const refused = async (user: User, path: string, json?: unknown) => {
        const answer = json === undefined ? await user.client.get(path) : await user.client.post(path, json);
        return [answer.status, answer.body.code];
      };
      expect(await refused(ann, '/api/teams/changes')).toEqual([404, 'not_found']);
      expect(await refused(ann, '/api/drafts/changes')).toEqual([403, 'forbidden']);
      expect(await refused(ann, '/api/notes/changes?limit=1')).toEqual([400, 'invalid_parameter']);
      expect(await refused(ann, '/api/notes/changes?nothing=1')).toEqual([400, 'filter_unknown_key']);
      expect(await refused(ann, '/api/notes/changes', { sort: ['id'] })).toEqual([422, 'validation_failed']);
      const unlogged = await ann.client.post('/api/notes/changes', {
        filter: 'cover.hidden = true and owner.email = "a"',
      });
      expect([unlogged.status, unlogged.body]).toEqual([
        400,
        expect.objectContaining({
          code: 'filter_invalid',
          errors: [
            { pointer: '/filter', code: 'not_logged', detail: expect.stringMatching(/`users`.*`changes: true`/) },
          ],
        }),
      ]);
      const unloggedLink = await ann.client.get(`/api/tags/changes?labels_any=${ann.id}`);
      expect([unloggedLink.status, unloggedLink.body.errors]).toEqual([
        400,
        [{ parameter: 'labels_any', code: 'not_logged', detail: expect.stringContaining('`labels`') }],
      ]);
      const several = (feeds: object) => refused(ann, '/api/changes', { feeds });
      expect(await several({ a: { collection: 'notes' }, b: { collection: 'drafts' } })).toEqual([403, 'forbidden']);
      expect(await several({ a: { collection: 'teams' } })).toEqual([404, 'not_found']);
      expect(await several({ 'a b': { collection: 'notes' } })).toEqual([422, 'validation_failed']);
      const filter = `title = "${'x'.repeat(4_000)}"`;
      const long = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { collection: 'notes', filter }]));
      expect(outcomeOf(await ann.client.post('/api/changes', { feeds: long }))).toEqual([
        400,
        'filter_invalid',
        '/feeds/c/filter policy_too_long',
      ]);
      for (const [body, ...expected] of [
        [[], ' not_an_object'],
        [{}, '/feeds required'],
        [{ feeds: [] }, '/feeds not_an_object'],
        [{ feeds: {} }, '/feeds invalid_value'],
        [{ feeds: { a: { collection: 'notes' } }, x: 1, 'a/b': 2 }, '/x unknown_key', '/a~1b unknown_key'],
        [{ feed: {} }, '/feed unknown_key', '/feeds required'],
        [{ feeds: { a: { collection: 'notes', x: 1 } } }, '/feeds/a/x unknown_key'],
      ] as const)
        expect(outcomeOf(await ann.client.post('/api/changes', body))).toEqual([422, 'validation_failed', ...expected]);
      const { status } = await service.anonymous.get('/api/notes/changes');
      expect(status).toBe(401);
      const asBrowser = await ann.client.get('/api/teams/changes', { Accept: 'text/event-stream' });
      expect([asBrowser.status, asBrowser.headers.get('content-type')]).toEqual([
        404,
        expect.stringContaining('application/problem+json'),
      ]);
    });

    test('an unknown key of a stream has no advice that streams reject', async () => {
      for (const [query, hint] of [
        ['q=1', ''],
        ['filters=1', ''],
        ['order_by=1', ''],
        ['page=1', ''],
        ['expands=1', ''],
        ['sincee=1', '; did you mean `since`?'],
        ['titel=1', '; did you mean `title`?'],
        ['tags=1', '; did you mean `tags_any`?'],
      ]) {
        const { status, body } = await ann.client.get(`/api/notes/changes?${query}`);
        const parameter = query!.slice(0, query!.indexOf('='));
        const detail = `\`notes\` has no filter \`${parameter}\`${hint}`;
        expect([status, body.errors]).toEqual([400, [{ parameter, code: 'filter_unknown_key', detail }]]);
      }
    });

    test('a stream tells proxies and browsers what it is, and a user has no more than the limit', async () => {
      const user = await service.user();
      const feeds = [];
      for (let i = 0; i < 5; i++) feeds.push(await ready(user));
      const headers = await feeds[0]!.headers;
      expect(['content-type', 'cache-control', 'x-accel-buffering'].map((name) => headers[name])).toEqual([
        'text/event-stream',
        'no-store',
        'no',
      ]);
      expect(feeds[0]!.text.join('')).toMatch(/^retry: 1000\n/);
      const beyond = await user.client.get('/api/notes/changes');
      expect([beyond.status, beyond.headers.get('retry-after')]).toEqual([429, '10']);
      feeds[0]!.close();
      await feeds[1]!.rest(50);
      await ready(user);
    });

    test('HEAD gives the headers of a stream, and holds no place', async () => {
      const user = await service.user();
      const head = (query = '') => user.client.send('HEAD', `/api/notes/changes${query}`);
      const heads = [];
      for (let i = 0; i < 6; i++) heads.push(await head());
      const feeds = [];
      for (let i = 0; i < 5; i++) feeds.push(await ready(user));
      const headers = await feeds[0]!.headers;
      for (const { status, text, headers: given } of heads) {
        expect([status, text]).toEqual([200, '']);
        for (const name of ['content-type', 'cache-control', 'x-accel-buffering'])
          expect(given.get(name)).toBe(headers[name]);
      }
      expect((await head('?nothing=1')).status).toBe(400);
      expect((await service.anonymous.send('HEAD', '/api/notes/changes')).status).toBe(401);
    });

    test('the metrics count streams, events, resets and ends; a restart ends all streams, whose readers come back by and by', async () => {
      const feed = await ready(bob);
      service.app.feeds!.endStreams();
      await until('the end of the stream', () => feed.isOver);
      expect(Number(feed.retry)).toBeGreaterThanOrEqual(500);
      expect(Number(feed.retry)).toBeLessThanOrEqual(4_000);
      expect(feed.retry).not.toBe('1000');
      const { text } = await service.anonymous.get('/metrics');
      for (const line of [
        /^bylaw_feed_streams 0/m,
        /^bylaw_feed_events_total\{type="enter"\} [1-9]/m,
        /^bylaw_feed_resets_total\{reason="related"\} [1-9]/m,
        /^bylaw_feed_closed_total\{reason="restart"\} [1-9]/m,
        /^bylaw_feed_lag_seconds_count [1-9]/m,
        /^bylaw_change_log_entries \d/m,
      ])
        expect(text).toMatch(line);
    });
  },
  { schema: SCHEMA },
);
