// @module-tag long
/** The filter of a subscriber that takes too much work, or reads too many rows, makes the subscriber list again. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { raw } from '../../src/sql.ts';
import { outcomeOf } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';
import { FeedClient } from './feed-client.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  docs:
    changes: true
    fields: { title: string, open: { type: bool, required: true, default: false } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      comments: { kind: has_many, collection: comments, via: doc }
    access:
      view: '@record.owner = @request.auth.id or @record.open = true'
      create: true
      update: '@record.owner = @request.auth.id'
  comments:
    changes: true
    fields: { text: string, at: int }
    relations: { doc: { kind: belongs_to, collection: docs, required: true } }
    access: { view: true, create: true }
`;
/** Few rows, whose combinations are more than the steps of a decision or an explanation. */
const ROWS = 80;
const CYCLE = 'any(comments as a, any(comments as b, any(comments as c, a.at < b.at and b.at < c.at and c.at < a.at)))';
const PAIRS = 'any(comments as a, any(comments as b, a.at < b.at))';
const ANY = 'any(comments as c, c.text = "x")';

describeOnBoth(
  'the work of filters',
  (service) => {
    let ann: User;
    let bob: User;
    let [wide, large, shared] = ['', '', ''];
    const feeds: FeedClient[] = [];
    const feedOf = async (user: User, filter: string, since?: string): Promise<FeedClient> => {
      const feed = new FeedClient(user.client, '/api/docs/changes', { body: { filter, ...(since && { since }) } });
      feeds.push(feed);
      await feed.until('ready');
      return feed;
    };
    const make = async (data: object): Promise<string> => {
      const { body, status, text } = await ann.client.post('/api/docs', { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const comment = (doc: string, text: string, rows: number) =>
      service.app.db.write(
        raw(`
          INSERT INTO comments (id, created_at, updated_at, text, at, doc_id)
          SELECT gen_random_uuid(), now(), now(), ${text}, n, '${doc}'
            FROM generate_series(1, ${rows}) n
          RETURNING 1`),
      );
    const patch = (...ids: readonly string[]) => {
      const operations = ids.map((id) => ({
        op: 'update',
        collection: 'docs',
        id,
        data: { title: `${Math.random()}` },
      }));
      return ann.client.post('/api/batch', { operations });
    };
    const typesOf = (feed: FeedClient) => feed.events.map(({ type, data }) => (type === 'reset' ? data.reason : type));

    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user(), service.user()]);
      wide = await make({ title: 'wide' });
      large = await make({ title: 'large' });
      shared = await make({ title: 'shared', open: true });
      await comment(wide, `'text'`, ROWS);
      await comment(large, `repeat('x', 200000)`, 45);
      await comment(shared, `'x'`, 2);
    });
    afterEach(() => {
      for (const feed of feeds.splice(0)) feed.close();
    });

    describe('of a feed', () => {
      test('a filter with too many combinations of related rows gives a reset, and others go on', async () => {
        const [cycle, other] = [await feedOf(ann, CYCLE), await feedOf(ann, 'title is not null')];
        await patch(wide);
        await Promise.all([cycle.until('reset'), other.until('change')]);
        expect([typesOf(cycle), typesOf(other)]).toEqual([
          ['ready', 'related'],
          ['ready', 'change'],
        ]);
      });

      test('the replay of such a feed gives a reset', async () => {
        const first = await feedOf(ann, CYCLE);
        first.close();
        await patch(wide);
        const resumed = await feedOf(ann, CYCLE, first.events[0]!.id);
        expect(typesOf(resumed)).toEqual(['related', 'ready']);
      });

      test('fewer combinations decide', async () => {
        const feed = await feedOf(ann, PAIRS);
        await patch(shared);
        await feed.until('change');
        expect(typesOf(feed)).toEqual(['ready', 'change']);
      });

      test('related rows with too many bytes reset only subscribers who may list their record', async () => {
        const [own, others] = [await feedOf(ann, ANY), await feedOf(bob, ANY)];
        await patch(large, shared);
        await Promise.all([own.until('reset'), others.until('change')]);
        expect([typesOf(own), typesOf(others)]).toEqual([
          ['ready', 'related'],
          ['ready', 'change'],
        ]);
      });
    });

    describe('of an explanation', () => {
      const explain = (id: string, filter: string) =>
        ann.client.post('/api/_explain', { collection: 'docs', action: 'list', id, filter });

      test.each([
        ['many combinations of rows', () => explain(wide, CYCLE)],
        ['rows with many bytes', () => explain(large, ANY)],
        ['rows that are reached again and again', () => explain(wide, again(5))],
      ])('%s are too expensive', async (_, ask) => {
        expect(outcomeOf(await ask())).toEqual([400, 'query_too_expensive']);
      });

      test('fewer combinations have their value and all leaves', async () => {
        const { body } = await explain(wide, PAIRS);
        expect([body.data.filter.value, body.data.filter.leaves.length]).toEqual(['true', ROWS * ROWS]);
      });
    });
  },
  { schema: SCHEMA },
);

/** Walks from a comment to its document and back, some times. */
const again = (times: number, from = '', name = 'c'): string =>
  times === 0
    ? `${name}.text = "none"`
    : `any(${from}comments as ${name}x, ${again(times - 1, `${name}x.doc.`, `${name}x`)})`;
