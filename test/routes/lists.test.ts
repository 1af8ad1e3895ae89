// @module-tag partitions
/** "Lists" of the interface. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../support/client.ts';
import { idsOf, makeTag, NOBODY, outcomeOf } from '../support/records.ts';
import { describeRoutes, ROUTES_SCHEMA, type User } from '../support/service.ts';

describeRoutes(
  'lists',
  (service) => {
    let ann: User;
    let bob: User;
    let ed: User;
    let posts: Answer['body'][];
    let category: Answer['body'];
    let tag: string;
    let cover: Answer['body'];
    let comment: Answer['body'];

    const make = async (user: User, collection: string, data: object): Promise<Answer['body']> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };
    const list = (query = '', user = ann) => user.client.get(`/api/posts${query}`);
    const titles = async (query: string, user = ann) => {
      const { body, text } = await list(query, user);
      return body.data === undefined ? text : body.data.map(({ title }: { title: string }) => title);
    };

    beforeAll(async () => {
      [ann, bob, ed] = await Promise.all([service.user(), service.user(), service.user('editor')]);
      category = await make(ed, 'categories', { name: 'News' });
      tag = await makeTag(service);
      cover = await make(ann, 'covers', { url: 'x' });
      const given = [
        { title: 'a', score: 1, rating: 0.1, pinned: true, due_at: '2026-01-31T09:30:00.000001Z', slug: '' },
        { title: 'b', score: -2, rating: 1e300, category: category.id, tags: { set: [tag] } },
        { title: 'c d&e=f', score: 1, cover: cover.id },
        { title: 'ünï +😀', status: 'published' },
      ];
      posts = [];
      for (const data of given) posts.push(await make(ann, 'posts', data));
      comment = await make(bob, 'comments', { text: 'x', post: posts[3].id });
      await make(bob, 'posts', { title: 'bob, hidden' });
      await make(bob, 'posts', { title: 'bob, seen', status: 'published' });
    });

    test('shows what the caller may see, in the order of creation', async () => {
      const { status, body } = await list();
      expect([status, body.page]).toEqual([200, { limit: 20, offset: 0, has_more: false }]);
      expect(body.data.slice(0, 4)).toEqual(posts.map((post, i) => (i === 3 ? post : post)));
      expect(await titles('')).toEqual(['a', 'b', 'c d&e=f', 'ünï +😀', 'bob, seen']);
      expect(await titles('', bob)).toEqual(['ünï +😀', 'bob, hidden', 'bob, seen']);
      expect(idsOf(body.data)).toEqual(idsOf(body.data).toSorted());
    });

    test('limit and offset', async () => {
      expect((await list('?limit=2')).body.page).toEqual({ limit: 2, offset: 0, has_more: true });
      expect(await titles('?limit=2&offset=1')).toEqual(['b', 'c d&e=f']);
      expect((await list('?limit=2&offset=3')).body.page).toEqual({ limit: 2, offset: 3, has_more: false });
      expect((await list('?offset=1000000')).body).toEqual({
        data: [],
        page: { limit: 20, offset: 1_000_000, has_more: false },
      });
      expect((await list('?limit=100')).body.page.limit).toBe(100);
    });

    test.each([
      'limit=0',
      'limit=101',
      'limit=-1',
      'limit=1.0',
      'limit=',
      'limit=%2B5',
      'limit=05',
      'limit=1e1',
      'limit=5&limit=5',
      'limit=99999999999999999999',
    ])('%s is an invalid parameter, never a clamp', async (query) => {
      expect(outcomeOf(await list(`?${query}`))).toEqual([400, 'invalid_parameter', 'limit invalid_parameter']);
    });
    test.each(['offset=-1', 'offset=1000001', 'offset=x', 'offset=', 'offset=0&offset=0'])(
      '%s is an invalid parameter',
      async (query) => {
        expect(outcomeOf(await list(`?${query}`))).toEqual([400, 'invalid_parameter', 'offset invalid_parameter']);
      },
    );

    test('Prefer: count=exact', async () => {
      const { body, headers } = await ann.client.get('/api/posts?limit=1&score=1', {
        Prefer: 'respond-async, count=exact',
      });
      expect(body.page).toEqual({ limit: 1, offset: 0, has_more: true, total: 2 });
      expect(headers.get('preference-applied')).toBe('count=exact');
      const without = await ann.client.get('/api/posts?limit=1', { Prefer: 'count=none, count=exact' });
      expect([without.body.page.total, without.headers.get('preference-applied')]).toEqual([undefined, null]);
    });

    test('count counts only what the caller may see', async () => {
      expect((await ann.client.get('/api/posts', { Prefer: 'count=exact' })).body.page.total).toBe(5);
      expect((await bob.client.get('/api/posts', { Prefer: 'count=exact' })).body.page.total).toBe(3);
    });

    describe('filters', () => {
      test.each([
        ['title=a', ['a']],
        ['title=c%20d%26e%3Df', ['c d&e=f']],
        ['title=c+d%26e%3Df', ['c d&e=f']],
        ['title=%C3%BCn%C3%AF+%2B%F0%9F%98%80', ['ünï +😀']],
        ['title=A', []],
        ["title=a'%20or%20'1'='1", []],
        ['score=1', ['a', 'c d&e=f']],
        ['score=-2', ['b']],
        ['score=1&pinned=true', ['a']],
        ['score=1&pinned=false', ['c d&e=f']],
        ['rating=0.1', ['a']],
        ['rating=1e300', ['b']],
        ['status=published', ['ünï +😀', 'bob, seen']],
        ['due_at=2026-01-31T10:30:00.000001%2B01:00', ['a']],
        ['due_at=2026-01-31T09:30:00Z', []],
        ['slug=', ['a']],
      ])('%s', async (query, expected) => {
        expect(await titles(`?${query}`)).toEqual(expected);
      });

      test('relations, the identifier and the stamps', async () => {
        expect(await titles(`?category=${category.id}`)).toEqual(['b']);
        expect(await titles(`?category_id=${category.id.toUpperCase()}`)).toEqual(['b']);
        expect(await titles(`?author_id=${ann.id}&score=-2`)).toEqual(['b']);
        expect(await titles(`?cover=${cover.id}`)).toEqual(['c d&e=f']);
        expect(await titles(`?tags_any=${tag}`)).toEqual(['b']);
        expect(await titles(`?comments_any=${comment.id}`)).toEqual(['ünï +😀']);
        expect(await titles(`?id=${posts[0].id}`)).toEqual(['a']);
        expect(await titles(`?created_at=${encodeURIComponent(posts[1].created_at)}`)).toEqual(['b']);
        expect(await titles(`?category=${NOBODY}`)).toEqual([]);
      });

      test('match only targets that the caller may read', async () => {
        const theirs = await make(bob, 'posts', {
          title: 'with a cover',
          status: 'published',
          cover: (await make(bob, 'covers', { url: 'b' })).id,
        });
        expect(theirs.cover).not.toBeNull();
        expect(await titles(`?cover=${theirs.cover}`)).toEqual([]);
        expect(await titles(`?cover=${theirs.cover}`, bob)).toEqual(['with a cover']);
        const hidden = await makeTag(service, { name: 'h' });
        const { id } = await make(ann, 'posts', { title: 'tagged', tags: { set: [hidden] } });
        expect(await titles(`?tags_any=${hidden}`)).toEqual(['tagged']);
        await ann.client.patch(`/api/tags/${hidden}`, { data: { hidden: true } });
        expect(await titles(`?tags_any=${hidden}`)).toEqual([]);
        await ann.client.delete(`/api/posts/${id}`);
        await bob.client.patch(`/api/posts/${theirs.id}`, { data: { status: 'draft' } });
      });

      test.each([
        ['score=1.0', 'score'],
        ['score=', 'score'],
        ['score=%20' + '1', 'score'],
        ['score=9007199254740992', 'score'],
        ['score=01', 'score'],
        ['rating=NaN', 'rating'],
        ['rating=', 'rating'],
        ['rating=.5', 'rating'],
        ['pinned=1', 'pinned'],
        ['pinned=TRUE', 'pinned'],
        ['pinned=', 'pinned'],
        ['due_at=2026-01-31', 'due_at'],
        ['due_at=2026-01-31T09:30:00.1234567Z', 'due_at'],
        ['due_at=', 'due_at'],
        ['status=nope', 'status'],
        ['title=%00', 'title'],
        ['title=%FF', 'title'],
        ['title=%ED%A0%80', 'title'],
        ['author=x', 'author'],
        ['category_id=', 'category_id'],
        ['tags_any=x', 'tags_any'],
        ['id=1', 'id'],
      ])('%s is not of the type', async (query, key) => {
        expect(outcomeOf(await list(`?${query}`))).toEqual([
          400,
          'filter_invalid_value',
          `${key} filter_invalid_value`,
        ]);
      });

      test.each([
        ['title=%00', '`title` must be a string without NUL'],
        ['title=%ff', '`title` must be percent-encoded UTF-8, in which `%` itself is `%25`'],
        ['title=100%', '`title` must be percent-encoded UTF-8, in which `%` itself is `%25`'],
        ['score=%ff', '`score` must be percent-encoded UTF-8, in which `%` itself is `%25`'],
      ])('the error of %s names what is wrong in the text', async (query, detail) => {
        const { status, body } = await list(`?${query}`);
        expect([status, body.errors]).toEqual([
          400,
          [{ parameter: query.split('=')[0], code: 'filter_invalid_value', detail }],
        ]);
      });

      test.each([
        ['titel=a', 'title'],
        ['tags=x', 'tags_any'],
        ['comments=x', 'comments_any'],
        ['cover_id=x', 'cover'],
        ['Limit=5', 'limit'],
        ['skip=2', 'offset'],
        ['per_page=5', 'limit'],
        ['orderBy=title', 'sort'],
        ['populate=author', 'expand'],
        ['score_any=1', 'score'],
        ['__proto__=1', ''],
        ['constructor=1', ''],
      ])('%s is unknown', async (query, near) => {
        const answer = await list(`?${query}`);
        const key = query.split('=')[0]!;
        expect(outcomeOf(answer)).toEqual([400, 'filter_unknown_key', `${key} filter_unknown_key`]);
        expect(answer.body.errors[0].detail).toContain(`\`${key}\``);
        if (near !== '') expect(answer.body.errors[0].detail).toContain(`did you mean \`${near}\``);
      });

      test('page is unknown, and the error names the ways to a page', async () => {
        expect((await list('?page=2')).body.errors).toEqual([
          {
            parameter: 'page',
            code: 'filter_unknown_key',
            detail:
              '`posts` has no filter `page`; a page begins at `offset`, the number of records before it, ' +
              'or at `cursor`, the `page.next_cursor` of the page before',
          },
        ]);
      });

      test('a key given twice, even with one value', async () => {
        expect(outcomeOf(await list('?score=1&score=1'))).toEqual([
          400,
          'filter_duplicate_key',
          'score filter_duplicate_key',
        ]);
      });

      test('all errors at once, and nothing runs', async () => {
        expect(outcomeOf(await list('?titel=a&score=x&limit=0&pinned=true&pinned=false'))).toEqual([
          400,
          'invalid_parameter',
          'limit invalid_parameter',
          'titel filter_unknown_key',
          'score filter_invalid_value',
          'pinned filter_duplicate_key',
        ]);
      });

      test('more keys than any parser cuts off are all read', async () => {
        const many = Array.from({ length: 1500 }, (_, i) => `k${i}`).join('&');
        expect((await list(`?${many}`)).body.error_count).toBe(1_500);
      });
    });

    test('expanded records obey the read rule of their own collection', async () => {
      const shown = await makeTag(service);
      const hidden = await makeTag(service);
      const { id } = await make(ann, 'posts', { title: 'e', category: category.id, tags: { set: [shown, hidden] } });
      await ann.client.patch(`/api/tags/${hidden}`, { data: { hidden: true } });
      const { body } = await list(`?id=${id}&expand=tags,author,category`);
      expect(body.data[0].expand).toMatchObject({
        tags: [{ id: shown }],
        author: { id: ann.id, email: ann.email },
        category,
      });
      expect(Object.keys(body.data[0].expand)).toEqual(['tags', 'author', 'category']);
      const seen = await bob.client.get(`/api/posts/${posts[3].id}?expand=author`);
      expect(seen.body.data).toMatchObject({ author: ann.id, expand: { author: null } });
      await ann.client.delete(`/api/posts/${id}`);
    });
  },
  { schema: ROUTES_SCHEMA },
);
