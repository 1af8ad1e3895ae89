// @module-tag partitions
/** Create, read, change, delete, one caller: "Conventions", "Success" and "Writes" of the interface. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../support/client.ts';
import { makeTag, NOBODY, outcomeOf } from '../support/records.ts';
import { describeRoutes, ROUTES_SCHEMA, type User } from '../support/service.ts';

const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const DATETIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
describeRoutes(
  'records',
  (service) => {
    let ann: User;
    let ed: User;
    beforeAll(async () => {
      ann = await service.user('member');
      ed = await service.user('editor');
    });
    const post = async (data: object, user = ann): Promise<Answer['body']> => {
      const answer = await user.client.post('/api/posts', { data: { title: 't', ...data } });
      expect(answer.text).toContain('"data"');
      expect(answer.status).toBe(201);
      return answer.body.data;
    };
    const tag = (name: string, hidden = false): Promise<string> => makeTag(service, { name, hidden });

    describe('create', () => {
      test('answers 201, Location, and the flat record with every field', async () => {
        const data = {
          title: 'Ünï',
          slug: 'a-slug',
          status: 'published',
          score: 7,
          rating: -0.5,
          pinned: true,
          due_at: '2026-01-31T10:30:00.5+01:00',
        };
        const { status, headers, body } = await ann.client.post('/api/posts', { data });
        const { id, created_at, updated_at, ...rest } = body.data;
        expect(status).toBe(201);
        expect(id).toMatch(UUID7);
        expect(created_at).toMatch(DATETIME);
        expect(updated_at).toBe(created_at);
        expect(rest).toEqual({
          ...data,
          due_at: '2026-01-31T09:30:00.500000Z',
          author: ann.id,
          category: null,
          cover: null,
        });
        expect(Object.keys(body.data).slice(0, 3)).toEqual(['id', 'created_at', 'updated_at']);
        expect(headers.get('location')).toBe(`/api/posts/${id}`);
        expect(headers.get('content-type')).toMatch(/^application\/json/);
        expect((await ann.client.get(headers.get('location')!)).body).toEqual(body);
      });

      test('fields left out take their default, else null', async () => {
        const record = await post({});
        expect(record).toMatchObject({
          slug: null,
          status: 'draft',
          score: null,
          rating: null,
          pinned: false,
          due_at: null,
          author: ann.id,
        });
      });

      test('all errors are reported at once, each at its place', async () => {
        const data = {
          status: 'nope',
          score: 1.5,
          rating: 'x',
          pinned: 1,
          due_at: '2026-02-30T00:00:00Z',
          created_at: 'x',
          id: NOBODY,
          titel: 'x',
          comments: [],
          title: '',
        };
        expect(outcomeOf(await ann.client.post('/api/posts', { data }))).toEqual([
          422,
          'validation_failed',
          '/data/status not_in_enum',
          '/data/score wrong_type',
          '/data/rating wrong_type',
          '/data/pinned wrong_type',
          '/data/due_at wrong_type',
          '/data/created_at read_only',
          '/data/id read_only',
          '/data/titel unknown_field',
          '/data/comments read_only',
          '/data/title too_short',
        ]);
      });

      test('a required field without a value, and null for it', async () => {
        expect(outcomeOf(await ann.client.post('/api/posts', { data: {} }))).toEqual([
          422,
          'validation_failed',
          '/data/title required',
        ]);
        expect(outcomeOf(await ann.client.post('/api/posts', { data: { title: null } }))).toEqual([
          422,
          'validation_failed',
          '/data/title required',
        ]);
      });

      test.each([
        ['score', 2 ** 53],
        ['score', -(2 ** 53)],
        ['score', '5'],
        ['title', 'a\0b'],
        ['title', '\ud800'],
        ['title', 'x'.repeat(101)],
        ['due_at', '2026-01-31T24:00:00Z'],
        ['due_at', '2026-01-31T09:30:60Z'],
        ['due_at', '2026-01-31T09:30:00.1234567Z'],
        ['due_at', '2026-01-31t09:30:00z'],
        ['due_at', '2026-01-31T09:30:00'],
        ['due_at', '0000-12-31T00:00:00Z'],
        ['due_at', '9999-12-31T23:59:59-01:00'],
      ])('refuses %s = %j', async (name, value) => {
        expect((await ann.client.post('/api/posts', { data: { title: 't', [name]: value } })).status).toBe(422);
      });

      test('takes the extremes', async () => {
        const record = await post({
          title: '😀'.repeat(100),
          score: -(2 ** 53 - 1),
          rating: -0,
          due_at: '0001-01-01T00:00:00Z',
        });
        expect(record).toMatchObject({
          title: '😀'.repeat(100),
          score: -9007199254740991,
          due_at: '0001-01-01T00:00:00.000000Z',
        });
        expect(Object.is(record.rating, 0)).toBe(true);
      });

      test('a unique value once, null many times', async () => {
        await post({ slug: 'only-one' });
        expect(outcomeOf(await ann.client.post('/api/posts', { data: { title: 't', slug: 'only-one' } }))).toEqual([
          409,
          'unique_violation',
          '/data/slug unique_violation',
        ]);
        await post({ slug: null });
        await post({ slug: null });
      });

      test('members of a many_to_many', async () => {
        const [a, b, c] = [await tag('a'), await tag('b'), await tag('c')];
        const { status, body } = await ann.client.post('/api/posts?expand=tags', {
          data: { title: 't', tags: { set: [b, a, a], add: [c], remove: [b] } },
        });
        expect([status, body.data.expand.tags.map((each: { id: string }) => each.id)]).toEqual([201, [a, c]]);
        expect(Object.hasOwn(body.data, 'tags')).toBe(false);
      });

      test.each([
        [{}, '/data/tags empty_operation'],
        [{ put: [] }, '/data/tags/put unknown_operation'],
        [[], '/data/tags wrong_type'],
        [{ add: 'x' }, '/data/tags/add wrong_type'],
        [{ add: ['x'] }, '/data/tags/add/0 wrong_type'],
        [{ add: [NOBODY] }, '/data/tags/add/0 not_found'],
        [{ set: Array.from({ length: 1001 }, () => NOBODY) }, '/data/tags/set too_many'],
      ])('refuses %j for a many_to_many', async (tags, error) => {
        expect(outcomeOf(await ann.client.post('/api/posts', { data: { title: 't', tags } }))).toEqual([
          422,
          'validation_failed',
          error,
        ]);
      });

      test('a hidden related record is indistinguishable from a missing one', async () => {
        const hidden = await tag('hidden', true);
        const told = async (id: string) => {
          const { status, body } = await ann.client.post('/api/posts', { data: { title: 't', tags: { add: [id] } } });
          return { status, ...body, request_id: '' };
        };
        expect(await told(hidden)).toEqual(await told(NOBODY));
        expect((await told(hidden)).status).toBe(422);
      });
    });

    describe('read', () => {
      test('a record by its identifier in any letter case', async () => {
        const record = await post({});
        const { status, headers, body } = await ann.client.get(`/api/posts/${record.id.toUpperCase()}`);
        expect([status, body]).toEqual([200, { data: record }]);
        expect(headers.get('etag')).toMatch(/^"[!-~]+"$/);
      });

      test.each(['not-a-uuid', NOBODY, '%ff', NOBODY.replaceAll('-', '')])('%s is 404', async (id) => {
        expect(outcomeOf(await ann.client.get(`/api/posts/${id}`))).toEqual([404, 'not_found']);
      });

      test('takes any query key, repeated or not', async () => {
        const record = await post({});
        expect((await ann.client.get(`/api/posts/${record.id}?x=1&x=2&limit=0`)).status).toBe(200);
      });

      test('If-None-Match', async () => {
        const { id } = await post({});
        const etag = (await ann.client.get(`/api/posts/${id}`)).headers.get('etag')!;
        const same = await ann.client.get(`/api/posts/${id}`, { 'If-None-Match': `"other", W/${etag}` });
        expect([same.status, same.text, same.headers.get('etag')]).toEqual([304, '', etag]);
        await ann.client.patch(`/api/posts/${id}`, { data: { score: 1 } });
        expect((await ann.client.get(`/api/posts/${id}`, { 'If-None-Match': etag })).status).toBe(200);
      });

      test('expand shows related records, in the order of their ids', async () => {
        const category = (await ed.client.post('/api/categories', { data: { name: `c${Math.random()}` } })).body.data;
        const record = await post({ status: 'published', category: category.id });
        const first = (await ann.client.post('/api/comments', { data: { text: '1', post: record.id } })).body.data;
        const second = (await ed.client.post('/api/comments', { data: { text: '2', post: record.id } })).body.data;
        const { body } = await ann.client.get(`/api/posts/${record.id}?expand=category,comments,cover,tags`);
        expect(body.data.expand).toEqual({ category, comments: [first, second], cover: null, tags: [] });
        expect(body.data.category).toBe(category.id);
      });

      test.each(['', 'nope', 'author,author', 'author.name', 'author,', 'title'])(
        'expand=%s is unknown',
        async (expand) => {
          const { id } = await post({});
          for (const path of [`/api/posts/${id}?expand=${expand}`, `/api/posts?expand=${expand}`]) {
            expect(outcomeOf(await ann.client.get(path))).toEqual([400, 'unknown_expand', 'expand unknown_expand']);
          }
          expect((await ann.client.patch(`/api/posts/${id}?expand=${expand}`, { data: { score: 1 } })).body.code).toBe(
            'unknown_expand',
          );
          expect((await ann.client.post(`/api/posts?expand=${expand}`, { data: { title: 'x' } })).body.code).toBe(
            'unknown_expand',
          );
        },
      );
    });
  },
  { schema: ROUTES_SCHEMA },
);
