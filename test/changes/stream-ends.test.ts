// @module-tag long
/** The ends of streams that are not their readers' wish: revoked keys, disabled users, unread events, another schema. */
import { beforeAll, expect, test } from 'vitest';
import { raw } from '../../src/sql.ts';
import { newApiKey, withKey } from '../auth/keyed.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { until } from '../support/until.ts';
import { FeedClient } from './feed-client.ts';

/** The rules of the collections beside the feed of notes. */
const OTHERS: Readonly<Record<'topics' | 'covers' | 'elsewhere', string>> = {
  topics: 'true = true',
  covers: 'true = true',
  elsewhere: 'true = true',
};

const schemaOf = (condition: string, retention = '1h', others: Partial<typeof OTHERS> = {}): string => {
  const { topics, covers, elsewhere } = { ...OTHERS, ...others };
  return `
roles: { admin: {}, member: {} }
guests: true
register: { roles: [member] }
limits: { feeds: { user: 2 } }
conditions: { 'is_shown(title: string)': '${condition}' }
collections:
  users: { access: { view: true, delete: [{ roles: [admin] }] } }
  notes:
    changes: { retention: ${retention} }
    fields: { title: string, text: string }
    relations:
      topic: { kind: belongs_to, collection: topics }
      cover: { kind: has_one, collection: covers, via: note }
    access: { view: 'is_shown(@record.title)', create: [{ roles: [member] }] }
  pages:
    changes: true
    fields: { title: string }
    access: { view: '@record.title = "open" or @request.origin = "https://app.example"', create: [{ roles: [member] }] }
  topics: { changes: true, fields: { name: string }, access: { view: '${topics}' } }
  covers:
    relations: { note: { kind: belongs_to, collection: notes } }
    access: { view: '${covers}' }
  elsewhere: { changes: true, fields: { name: string }, access: { view: '${elsewhere}' } }
`;
};
const SCHEMA = schemaOf('title != "hidden"');
const LARGE = 524_288;
/** Ends only a test that would hang. */
const LARGE_REPLAY_MS = 60_000;
/** Events of half a MiB: more than the sockets of both sides buffer. */
const MOST_LARGE = 100;

describeOnOne(
  'the end of a stream',
  (service) => {
    let admin: User;
    let ann: User;
    beforeAll(async () => {
      [admin, ann] = await Promise.all([service.user('admin'), service.user()]);
    });
    const ready = async (client: User['client'], init = {}, path = '/api/notes/changes'): Promise<FeedClient> => {
      const feed = new FeedClient(client, path, init);
      await feed.until('ready');
      return feed;
    };
    const make = async (data: object): Promise<string> => {
      const { body, text } = await ann.client.post('/api/notes', { data });
      if (body.data === undefined) throw new Error(text);
      return body.data.id;
    };

    test('a stream is not compressed, though its client takes every coding', async () => {
      const headers = { 'Accept-Encoding': 'br, gzip' };
      await make({ title: 'long', text: 'x'.repeat(5_000) });
      expect((await ann.client.get('/api/notes', headers)).headers.get('content-encoding')).toBe('gzip');
      const feed = await ready(ann.client, { headers });
      expect((await feed.headers)['content-encoding']).toBeUndefined();
      await make({ title: 'plain', text: 'x'.repeat(5_000) });
      await feed.until('enter');
      feed.close();
    });

    test('a revoked key ends the streams that it opened, and no other', async () => {
      const maker = await service.user('admin');
      const key = await newApiKey(service, maker.client, { roles: ['member'] });
      const [byKey, bySession] = [await ready(key.client), await ready(maker.client)];
      expect((await maker.client.delete(`/api/auth/keys/${key.id}`)).status).toBe(204);
      await until('the end of the stream', () => byKey.isOver);
      await make({ title: 'later' });
      await bySession.until('enter');
      expect(byKey.events.map(({ type }) => type)).toEqual(['ready']);
      bySession.close();
    });

    test('a narrower limit ends the streams of a key, or makes their readers list again', async () => {
      const key = await newApiKey(service, admin.client, { roles: ['member'] });
      const stream = await ready(key.client);
      const narrow = async (limit: object) =>
        expect((await admin.client.patch(`/api/auth/keys/${key.id}`, { limit })).status).toBe(200);
      await narrow({ notes: ['list', 'read'], users: ['list'] });
      expect(await stream.until('reset')).toEqual([['reset', { reason: 'caller' }]]);
      await narrow({ users: ['list'] });
      await until('the end of the stream', () => stream.isOver);
      await make({ title: 'beyond the limit' });
      expect(stream.events.filter(({ type }) => type === 'enter')).toEqual([]);
    });

    test('a rotation ends the streams of the old secret, after its overlap', async () => {
      const key = await newApiKey(service, admin.client, { roles: ['member'] });
      const stream = await ready(key.client);
      const rotate = async (overlap: number): Promise<string> =>
        (await admin.client.post(`/api/auth/keys/${key.id}/rotate`, { overlap })).body.secret;
      await rotate(60);
      await make({ title: 'within the overlap' });
      await stream.until('enter');
      const renewed = await ready(withKey(service, await rotate(0)));
      await until('the end of the stream', () => stream.isOver);
      await make({ title: 'after it' });
      await renewed.until('enter');
      renewed.close();
    });

    test.each(['disabled', 'deleted'])('a user who is %s loses every stream, of sessions and of keys', async (end) => {
      const user = await service.user('admin');
      const key = await newApiKey(service, user.client, { roles: ['member'] });
      const streams = [await ready(user.client), await ready(key.client)];
      const path = `/api/users/${user.id}`;
      const { status, text } =
        end === 'deleted' ? await admin.client.delete(path) : await admin.client.post(`${path}/disable`, {});
      expect([status < 300, text]).toEqual([true, text]);
      await until('the ends of both streams', () => streams.every(({ isOver }) => isOver));
    });

    test('a user whom another program disables loses the stream without news', async () => {
      const user = await service.user();
      const stream = await ready(user.client);
      await service.app.db.run(raw(`UPDATE users SET disabled = true WHERE id = '${user.id}'`));
      await until('the end of the stream', () => stream.isOver);
    });

    test('a publishable key has the places of a caller for each address', async () => {
      const { client } = await newApiKey(service, admin.client, { publishable: true, roles: undefined });
      const from = (address: string) => new FeedClient(client, '/api/notes/changes', { from: address });
      const opened: FeedClient[] = [];
      const statuses: (number | undefined)[] = [];
      for (const address of ['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.2']) {
        const stream = from(address);
        opened.push(stream);
        statuses.push(await stream.status);
      }
      expect(statuses).toEqual([200, 200, 429, 200, 200, 429]);
      for (const each of opened) each.close();
    });

    test('a reader who leaves 1 MiB unread is disconnected, holds up nobody, and resumes', async () => {
      const [silent, reader] = [
        new FeedClient(ann.client, '/api/notes/changes', { isSilent: true }),
        await ready(admin.client),
      ];
      expect(await silent.status).toBe(200);
      const isCut = async (): Promise<boolean> =>
        /^bylaw_feed_closed_total\{reason="unread"\} [1-9]/m.test((await service.anonymous.get('/metrics')).text);
      let made = 0;
      while (!(await isCut()) && made < MOST_LARGE) {
        const values = `gen_random_uuid(), 'large ${made++}', repeat('x', ${LARGE})`;
        await service.app.db.run(raw(`INSERT INTO notes (id, title, text) VALUES (${values})`));
        await service.app.feeds!.look();
        await reader.until('enter');
      }
      expect(await isCut()).toBe(true);
      await silent.read();
      const resumed = new FeedClient(ann.client, '/api/notes/changes', {
        headers: { 'Last-Event-ID': silent.position },
      });
      await resumed.until('ready', LARGE_REPLAY_MS);
      const titles = [...silent.events, ...resumed.events].flatMap(({ data }) => data.record?.title ?? []);
      expect(titles).toEqual(Array.from({ length: made }, (_, i) => `large ${i}`));
      for (const each of [reader, resumed]) each.close();
    });

    test('a position of a request for which rules decide otherwise makes the reader list again', async () => {
      const inside = { Origin: 'https://app.example' };
      const open = async (headers: Readonly<Record<string, string>>) => {
        const feed = new FeedClient(ann.client, '/api/pages/changes', { headers });
        const events = await feed.until('ready');
        feed.close();
        return { position: feed.position, types: events.map(([type]) => type) };
      };
      await ann.client.post('/api/pages', { data: { title: 'of the page' } });
      const { position } = await open({});
      const near = await open({ ...inside, 'Last-Event-ID': position });
      const nearAgain = await open({ ...inside, 'Last-Event-ID': near.position });
      const far = await open({ Origin: 'https://other.example', 'Last-Event-ID': nearAgain.position });
      expect([near, nearAgain, far].map(({ types }) => types)).toEqual([
        ['reset', 'ready'],
        ['ready'],
        ['reset', 'ready'],
      ]);
    });

    test('an event of more than 1 MiB reaches a live reader and a replay', async () => {
      const live = await ready(ann.client);
      const { position } = live;
      const values = `gen_random_uuid(), 'longer', repeat('x', ${3 * LARGE})`;
      await service.app.db.run(raw(`INSERT INTO notes (id, title, text) VALUES (${values})`));
      await service.app.feeds!.look();
      await live.until('enter', LARGE_REPLAY_MS);
      const resumed = new FeedClient(ann.client, '/api/notes/changes', { headers: { 'Last-Event-ID': position } });
      await resumed.until('ready', LARGE_REPLAY_MS);
      for (const stream of [live, resumed]) {
        expect(stream.events.flatMap(({ data }) => data.record?.text.length ?? [])).toEqual([3 * LARGE]);
        expect(stream.isOver).toBe(false);
        stream.close();
      }
      await service.app.db.run(raw(`DELETE FROM notes WHERE title = 'longer'`));
    });

    test('another schema ends each stream, whose reader lists again where a rule means another thing', async () => {
      const other = schemaOf('title != "hidden" and title != "old"');
      const seen = async (since: string): Promise<readonly string[]> => {
        const resumed = await ready(ann.client, { headers: { 'Last-Event-ID': since } });
        resumed.close();
        return resumed.events.map(({ type, data }) => data.reason ?? type);
      };
      const first = await ready(ann.client);
      await service.replaceSchema(schemaOf('title != "hidden"', '2h'));
      await until('the end of the stream', () => first.isOver);
      expect(Number(first.retry)).toBeGreaterThanOrEqual(500);
      expect(await seen(first.position)).toEqual(['ready']);
      const second = await ready(ann.client);
      await service.replaceSchema(other);
      await until('the end of the stream', () => second.isOver);
      expect(await seen(second.position)).toEqual(['schema', 'ready']);
      await service.replaceSchema(SCHEMA);
    });

    test.each([
      ['elsewhere', { elsewhere: ['schema', 'ready'], notes: ['ready'], topic: ['ready'] }],
      ['topics', { elsewhere: ['ready'], notes: ['ready'], topic: ['schema', 'ready'] }],
      ['covers', { elsewhere: ['ready'], notes: ['schema', 'ready'], topic: ['schema', 'ready'] }],
    ])('another rule of `%s` resets the feeds that depend on it, and no other', async (changed, expected) => {
      const feeds = {
        elsewhere: ['/api/elsewhere/changes', {}],
        notes: ['/api/notes/changes', {}],
        topic: ['/api/notes/changes', { body: { filter: 'topic.name = "a"' } }],
      } as const;
      const positions = new Map<string, string>();
      for (const [name, [path, init]] of Object.entries(feeds)) {
        const feed = await ready(ann.client, init, path);
        positions.set(name, feed.position);
        feed.close();
      }
      await service.replaceSchema(schemaOf('title != "hidden"', '1h', { [changed]: '@request.auth.id is not null' }));
      const seen: Record<string, readonly string[]> = {};
      for (const [name, [path, init]] of Object.entries(feeds)) {
        const headers = { 'Last-Event-ID': positions.get(name) };
        const feed = await ready(ann.client, { ...init, headers }, path);
        feed.close();
        seen[name] = feed.events.map(({ type, data }) => data.reason ?? type);
      }
      expect(seen).toEqual(expected);
      await service.replaceSchema(SCHEMA);
    });
  },
  { schema: SCHEMA },
);
