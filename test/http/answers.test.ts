// @module-tag long
/** Long answers over the wire: they are written in chunks, and are what the same answers in one write would be. */
import { request } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { until } from '../support/until.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
limits: { body: 2MiB, answer: 1MiB }
collections:
  posts:
    fields: { body: { type: string } }
    relations:
      thread: { kind: belongs_to, collection: threads }
      tags: { kind: many_to_many, collection: tags }
    access: { view: true, create: true, update: true }
  threads:
    fields: { body: { type: string } }
    relations: { posts: { kind: has_many, collection: posts, via: thread } }
    access: { view: true, create: true }
  tags:
    fields: { body: { type: string } }
    access: { view: true, create: true }
`;
const KIB = 1_024;

describeOnOne(
  'a long answer',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });
    const made = async (collection: string, data: object): Promise<string> => {
      const answer = await ann.client.post(`/api/${collection}`, { data });
      expect(answer.status).toBe(201);
      return answer.body.data.id;
    };

    describe('of one record', () => {
      // Both halves of the pairs meet the ends of chunks, wherever these are.
      test.each([
        ['ASCII', 'x'.repeat(600 * KIB)],
        ['Latin-1', 'é'.repeat(300 * KIB)],
        ['surrogate pairs', '😀'.repeat(150 * KIB)],
        ['surrogate pairs after one character', `x${'😀'.repeat(150 * KIB)}`],
      ])('a record of %s arrives whole, with its length and its tag', async (_, body) => {
        const id = await made('posts', { body });
        const answer = await ann.client.get(`/api/posts/${id}`);
        expect([answer.status, answer.body.data.body === body]).toEqual([200, true]);
        expect(answer.headers.get('content-length')).toBe(`${Buffer.byteLength(answer.text)}`);
        const etag = answer.headers.get('etag')!;
        expect((await ann.client.get(`/api/posts/${id}`, { 'If-None-Match': etag })).status).toBe(304);
        const patched = await ann.client.patch(
          `/api/posts/${id}`,
          { data: { body: `${body}.` } },
          { 'If-Match': etag },
        );
        expect([patched.status, patched.body.data.body.length]).toEqual([200, body.length + 1]);
      });

      test('HEAD has the length of GET and no body', async () => {
        const id = await made('posts', { body: 'x'.repeat(100 * KIB) });
        const got = await ann.client.get(`/api/posts/${id}`);
        const { status, headers, text } = await ann.client.send('HEAD', `/api/posts/${id}`);
        const sent = ['content-length', 'content-type', 'etag'].map((name) => headers.get(name));
        expect([status, text, sent]).toEqual([
          200,
          '',
          ['content-length', 'content-type', 'etag'].map((name) => got.headers.get(name)),
        ]);
      });

      test('a tag does not depend on the number of pieces', async () => {
        const thread = await made('threads', { body: 'é'.repeat(40 * KIB) });
        const id = await made('posts', { body: 'short', thread });
        const etag = (await ann.client.get(`/api/posts/${id}?expand=thread`)).headers.get('etag')!;
        const again = await ann.client.get(`/api/posts/${id}?expand=thread`, { 'If-None-Match': etag });
        expect(again.status).toBe(304);
      });
    });

    describe('of a page', () => {
      test('records that share a related one each hold it, in the bytes of GET', async () => {
        const body = 'é😀'.repeat(5 * KIB);
        const thread = await made('threads', { body });
        for (let i = 0; i < 10; i++) await made('posts', { body: `post ${i}`, thread });
        const answer = await ann.client.get(`/api/posts?thread=${thread}&expand=thread`);
        const shown = answer.body.data.map((post: { body: string; expand: { thread: { body: string } } }) => [
          post.body,
          post.expand.thread.body === body,
        ]);
        expect(shown).toEqual(Array.from({ length: 10 }, (_, i) => [`post ${i}`, true]));
        expect(answer.headers.get('content-length')).toBe(`${Buffer.byteLength(answer.text)}`);
        expect(answer.body.page).toEqual({ limit: 20, offset: 0, has_more: false });
      });

      test('copies count: a page of them that is beyond the limit is too expensive', async () => {
        const thread = await made('threads', { body: 'x'.repeat(150 * KIB) });
        for (let i = 0; i < 8; i++) await made('posts', { body: `${i}`, thread });
        const path = `/api/posts?thread=${thread}&expand=thread`;
        expect((await ann.client.get(`${path}&limit=6`)).text.length).toBeGreaterThan(900 * KIB);
        expect(outcomeOf(await ann.client.get(path))).toEqual([400, 'query_too_expensive']);
      });

      test('rows that share large related records are refused as they arrive', async () => {
        const tags: string[] = [];
        for (let i = 0; i < 10; i++) tags.push(await made('tags', { body: 'x'.repeat(80 * KIB) }));
        const thread = await made('threads', { body: '' });
        for (let i = 0; i < 10; i++) await made('posts', { body: `${i}`, thread, tags: { set: tags } });
        const asked = { filter: 'thread = $t', params: { t: thread }, expand: { tags: {} } };
        const answer = await ann.client.post('/api/posts/query', asked);
        expect(outcomeOf(answer)).toEqual([400, 'query_too_expensive']);
        const one = await ann.client.post('/api/posts/query', { ...asked, limit: 1 });
        expect([one.status, one.body.data[0].expand.tags.length]).toEqual([200, 10]);
      });

      test('a page is within the limit to the byte', async () => {
        const thread = await made('threads', { body: 'é'.repeat(512 * KIB - 200) });
        const path = `/api/threads/${thread}`;
        const { text } = await ann.client.get(path);
        const record = Buffer.byteLength(text) - '{"data":}'.length;
        const missing = 1_024 * KIB - record - 1;
        const post = await made('posts', { body: '', thread });
        const page = await ann.client.get(`/api/posts?thread=${thread}`);
        const own = Buffer.byteLength(JSON.stringify(page.body.data[0])) + ',"expand":{"thread":}'.length;
        const fill = async (bytes: number) => {
          await ann.client.patch(`/api/posts/${post}`, { data: { body: 'x'.repeat(bytes) } });
          return (await ann.client.get(`/api/posts?thread=${thread}&expand=thread`)).status;
        };
        expect([await fill(missing - own), await fill(missing - own + 1)]).toEqual([200, 400]);
      });
    });

    test('a batch whose records are beyond the limit names the rest by their ids', async () => {
      const id = await made('posts', { body: 'x'.repeat(100 * KIB) });
      const update = { op: 'update', collection: 'posts', id, data: { thread: null } };
      const { status, body, text } = await ann.client.post('/api/batch', {
        operations: Array.from({ length: 30 }, () => update),
      });
      const whole = body.data.filter(({ data }: { data: object }) => Object.keys(data).length > 1).length;
      expect([status, body.data.length, whole]).toEqual([200, 30, 10]);
      expect(body.data.at(-1)).toEqual({ status: 200, data: { id } });
      expect(text.length).toBeLessThan(1_024 * KIB);
    });

    test('clients that leave in the middle of an answer end their requests', async () => {
      const id = await made('posts', { body: 'x'.repeat(300 * KIB) });
      // Twice as many as one caller may have at a time.
      for (let round = 0; round < 3; round++) {
        const left = Array.from({ length: 32 }, () => leave(`${service.url}/api/posts/${id}`, ann.token));
        // The service learns of the departures a little later.
        expect([200, 429]).toEqual(expect.arrayContaining([...new Set(await Promise.all(left))]));
      }
      await until('the service answers', async () => (await ann.client.get(`/api/posts/${id}`)).status === 200);
    });
  },
  { schema: SCHEMA },
);

/** Asks, reads the beginning of the answer, and closes the connection. */
function leave(url: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: { authorization: `Bearer ${token}` }, agent: false }, (answer) => {
      answer.once('data', () => {
        sent.destroy();
        resolve(answer.statusCode);
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}
