// @module-tag long
// @module-tag partitions
/** `POST /api/{collection}/query` of the contract: its keys, its answers and its errors. The visibility of records to filters is in query-visibility. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../../support/client.ts';
import { makeTag, outcomeOf, saidBy } from '../../support/records.ts';
import { describeRoutes, ROUTES_SCHEMA, type User } from '../../support/service.ts';

type Record = { readonly [key: string]: unknown };

describeRoutes(
  'queries',
  (service) => {
    let ann: User;
    let bob: User;
    let ed: User;
    let news: Record;
    let tag: string;

    const make = async (user: User, collection: string, data: object): Promise<Record> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };
    const query = (body: unknown, user = ann, collection = 'posts'): Promise<Answer> =>
      user.client.post(`/api/${collection}/query`, body);
    const titles = async (body: object, user = ann): Promise<unknown> => {
      const { body: answer, text } = await query(body, user);
      return answer.data === undefined ? text : answer.data.map(({ title }: Record) => title);
    };
    const found = (filter: string, params: object = {}, user = ann) => titles({ filter, params }, user);

    beforeAll(async () => {
      [ann, bob, ed] = await Promise.all([service.user(), service.user(), service.user('editor')]);
      news = await make(ed, 'categories', { name: 'News' });
      const sport = await make(ed, 'categories', { name: 'Sport' });
      tag = await makeTag(service, { name: 'red' });
      const posts = [];
      for (const data of [
        { title: 'a', score: 3, rating: 0.5, due_at: '2026-01-31T09:30:00.000001Z', category: news.id },
        { title: 'b', score: -2, pinned: true, category: sport.id, tags: { set: [tag] } },
        { title: 'c d', score: 3, rating: 1e300, category: news.id },
        { title: 'ünï +😀', status: 'published' },
      ])
        posts.push(await make(ann, 'posts', data));
      await make(bob, 'posts', { title: 'bob, hidden', category: news.id });
      await make(bob, 'posts', { title: 'bob, seen', status: 'published', category: news.id });
      for (const text of ['one', 'two', 'three']) await make(bob, 'comments', { text, post: posts[3]!.id });
      await make(ann, 'comments', { text: 'four', post: posts[0]!.id });
    });

    describe('a body of hostile size', () => {
      // As many as a body may hold.
      const many = Array.from({ length: 9_000 }, (_, i) => `k${i}`);
      const asKeys = Object.fromEntries(many.map((key) => [key, 1]));
      test.each([
        ['params', { filter: 'score > $k', params: asKeys }, 1],
        ['keys', asKeys, 100],
        ['fields', { fields: many }, 100],
        ['relations', { expand: asKeys }, 1],
      ])('too many %s: an answer in time', async (_, body, shown) => {
        const began = process.cpuUsage();
        const answer = await query(body);
        expect([answer.status, answer.body.errors.length]).toEqual([422, shown]);
        // Processor time: what else the machine does is not counted. A look at each pair of keys takes minutes.
        const { user, system } = process.cpuUsage(began);
        expect((user + system) / 1_000).toBeLessThan(10_000);
      });
    });

    describe('filter and params', () => {
      test('match what is true', async () => {
        expect(await titles({})).toEqual(['a', 'b', 'c d', 'ünï +😀', 'bob, seen']);
        expect(await found('score > 0')).toEqual(['a', 'c d']);
        expect(await found('not (score > 0)')).toEqual(['b']);
        expect(await found('score is null and author = @me')).toEqual(['ünï +😀']);
        expect(await found('author != @me')).toEqual(['bob, seen']);
        expect(await found('category.name = "News"')).toEqual(['a', 'c d', 'bob, seen']);
        expect(await found('category_id = $it', { it: String(news.id).toUpperCase() })).toEqual([
          'a',
          'c d',
          'bob, seen',
        ]);
        expect(await found('any(comments as c, c.text starts with "t" and c.author != author)')).toEqual(['ünï +😀']);
        expect(await found('count(comments) = 1 or tags contains $tag', { tag })).toEqual(['a', 'b']);
        expect(await found('due_at < @now - 1d')).toEqual(['a']);
        expect(await found('pinned')).toEqual(['b']);
        expect(await found('true', {}, bob)).toEqual(['ünï +😀', 'bob, hidden', 'bob, seen']);
      });

      test('take values of every type, by the other side', async () => {
        expect(await found('score = $n', { n: 3 })).toEqual(['a', 'c d']);
        expect(await found('score >= $n', { n: -1.5 })).toEqual(['a', 'c d']);
        expect(await found('score in $n', { n: [-2, 2.5, null] })).toEqual(['b']);
        expect(await found('score not in $n', { n: [-2] })).toEqual(['a', 'c d']);
        expect(await found('score not in $n', { n: [-2, null] })).toEqual([]);
        expect(await found('score not in $n', { n: [] })).toHaveLength(5);
        expect(await found('rating > $n', { n: 1e299 })).toEqual(['c d']);
        expect(await found('due_at = $t', { t: '2026-01-31T10:30:00.000001+01:00' })).toEqual(['a']);
        expect(await found('title contains $t and $flag', { t: '😀', flag: true })).toEqual(['ünï +😀']);
        expect(await found('title in $t', { t: ['b', "'; DROP TABLE posts; --"] })).toEqual(['b']);
        expect(await found('$all contains title', { all: 'abc' })).toEqual(['a', 'b']);
        expect(await found('$all contains title', { all: ['a', 'x'] })).toEqual(['a']);
        expect(await found('count(comments) > $n', { n: 2 })).toEqual(['ünï +😀']);
        // An absent value leaves a comparison unknown; the usual way to make a filter optional.
        expect(await found('score = $n', { n: null })).toEqual([]);
        expect(await found('$n is null or score = $n', { n: null })).toHaveLength(5);
        expect(await found('$n is null or score = $n', { n: 3 })).toEqual(['a', 'c d']);
        expect(await found('$s = "x" and pinned', { s: 'x' })).toEqual(['b']);
      });

      test.each<[string, object, unknown[]]>([
        ['score = $n', { n: '3' }, ['/params/n invalid_param']],
        ['title = $t', { t: 3 }, ['/params/t invalid_param']],
        ['title = $t', { t: ['b'] }, ['/params/t invalid_param']],
        ['title = $t', { t: 'a\0' }, ['/params/t invalid_param']],
        ['title contains $t', { t: 'a'.repeat(251) }, ['/params/t invalid_param']],
        ['title in $t', { t: 'b' }, ['/params/t invalid_param']],
        ['title in $t', { t: ['b', 1] }, ['/params/t invalid_param']],
        ['pinned = $p', { p: 1 }, ['/params/p invalid_param']],
        ['$p', { p: 'true' }, ['/params/p invalid_param']],
        ['due_at < $t', { t: '2026-01-31' }, ['/params/t invalid_param']],
        ['author = $id', { id: 'x' }, ['/params/id invalid_param']],
        ['pinned', { a: 1, b: null }, ['/params/a invalid_param', '/params/b invalid_param']],
        ['score = $n', { n: { a: 1 } }, ['/params/n invalid_param']],
        ['score = $n', { n: [[1]] }, ['/params/n invalid_param']],
      ])('%s with %j is refused', async (filter, params, expected) => {
        expect(outcomeOf(await query({ filter, params }))).toEqual([422, 'validation_failed', ...expected]);
      });

      test.each([
        ['score = $n', '9007199254740991.4'],
        ['score < $n', '-0.99999999999999999999'],
        ['score != $n', '1e-400'],
        ['score in $n', '[-2, 2.00000000000000000001]'],
        ['count(comments) >= $n', '1.00000000000000000001'],
        ['$n = 3', '3.00000000000000000001'],
        ['rating = $n and score = $n', '3.00000000000000000001'],
      ])('%s with %s is refused, as a double is an int', async (filter, numeral) => {
        const raw = `{"filter":"${filter}","params":{"n":${numeral}}}`;
        const headers = { 'Content-Type': 'application/json' };
        const answer = await ann.client.send('POST', '/api/posts/query', { raw, headers });
        expect(outcomeOf(answer)).toEqual([422, 'validation_failed', '/params/n invalid_param']);
      });

      test.each([
        ['score > $n', '-2.10000000000000000001', ['a', 'b', 'c d']],
        ['score < $n', '9007199254740993', ['a', 'b', 'c d']],
        ['score = $n', '30.00000000000000000000e-1', ['a', 'c d']],
        ['rating < $n', '1.00000000000000000001e299', ['a']],
      ])('%s with %s lies between the same numbers as its double', async (filter, numeral, expected) => {
        const raw = `{"filter":"${filter}","params":{"n":${numeral}}}`;
        const headers = { 'Content-Type': 'application/json' };
        const { body } = await ann.client.send('POST', '/api/posts/query', { raw, headers });
        expect(body.data.map(({ title }: Record) => title)).toEqual(expected);
      });

      test('params without a filter are rejected', async () => {
        expect(outcomeOf(await query({ params: { a: 1 } }))).toEqual([
          422,
          'validation_failed',
          '/params/a invalid_param',
        ]);
      });

      test.each<[string, [code: string, offset: number, length: number][]]>([
        ['scor > 1', [['name_unknown', 0, 4]]],
        ['score > 1 and x', [['text_unquoted', 14, 1]]],
        ['score >', [['operand_expected', 6, 1]]],
        ['score = "x"', [['type_mismatch', 8, 3]]],
        ['score = $n', [['param_missing', 8, 2]]],
        ['@record.score = 1', [['path_unknown', 0, 13]]],
        ['author = @request.auth.id', [['path_unknown', 9, 16]]],
        ['title = @request.query.t', [['path_unknown', 8, 16]]],
        ['author = @me.id', [['path_unknown', 9, 6]]],
        ['@next.score = 1', [['path_unknown', 0, 11]]],
        ['changed(score)', [['change_misplaced', 0, 14]]],
        ['is_member(author)', [['function_unknown', 0, 9]]],
        ['', [['filter_empty', 0, 0]]],
        [' /* nothing */ ', [['filter_empty', 0, 15]]],
        [`title = "${'x'.repeat(4096)}"`, [['policy_too_long', 0, 4106]]],
        [`title contains "${'x'.repeat(251)}"`, [['needle_too_long', 15, 253]]],
        [
          'a.b = 1 and c = 2',
          [
            ['name_unknown', 0, 1],
            ['text_unquoted', 12, 1],
          ],
        ],
      ])('%s is filter_invalid', async (filter, expected) => {
        const { status, body } = await query({ filter, sort: ['also wrong'] });
        expect([status, body.code]).toEqual([400, 'filter_invalid']);
        const said = body.errors.map(({ pointer, code, offset, length }: Record) => [pointer, code, offset, length]);
        expect(said).toEqual(expected.map((each) => ['/filter', ...each]));
      });

      test('offer a fix that is right', async () => {
        const { body } = await query({ filter: '@record.scor = 1 and authr = @me' });
        expect(body.errors[1]).toEqual({
          pointer: '/filter',
          code: 'name_unknown',
          detail: 'unknown name `authr`; did you mean `author`?',
          offset: 21,
          length: 5,
          fix: { offset: 21, length: 5, replacement: 'author' },
        });
      });
    });

    describe('sort', () => {
      test.each<[string[], string[]]>([
        [[], ['a', 'b', 'c d', 'ünï +😀', 'bob, seen']],
        [['-id'], ['bob, seen', 'ünï +😀', 'c d', 'b', 'a']],
        [['title'], ['a', 'b', 'bob, seen', 'c d', 'ünï +😀']],
        [['score'], ['b', 'a', 'c d', 'ünï +😀', 'bob, seen']],
        [['-score'], ['a', 'c d', 'b', 'ünï +😀', 'bob, seen']],
        [
          ['-score', '-rating'],
          ['c d', 'a', 'b', 'ünï +😀', 'bob, seen'],
        ],
        [
          ['pinned', '-title'],
          ['ünï +😀', 'c d', 'bob, seen', 'a', 'b'],
        ],
        [
          ['category.name', '-id'],
          ['bob, seen', 'c d', 'a', 'b', 'ünï +😀'],
        ],
        [
          ['-category.id', 'title'],
          ['b', 'a', 'bob, seen', 'c d', 'ünï +😀'],
        ],
        [
          ['-category_id.name', 'due_at'],
          ['b', 'a', 'c d', 'bob, seen', 'ünï +😀'],
        ],
      ])('%j', async (sort, expected) => {
        expect(await titles({ sort })).toEqual(expected);
        // Page by page, the same.
        for (const limit of [1, 2, 3]) {
          const walked: unknown[] = [];
          let cursor: string | null = null;
          do {
            const { body } = await query({ sort, limit, cursor, fields: ['title'] });
            walked.push(...body.data.map(({ title }: Record) => title));
            cursor = body.page.next_cursor;
          } while (cursor !== null);
          expect(walked).toEqual(expected);
        }
      });

      test.each<[unknown, string[]]>([
        [['titel'], ['/sort/0 invalid_sort']],
        [['title', '-author'], ['/sort/1 invalid_sort']],
        [['cover'], ['/sort/0 invalid_sort']],
        [['comments.text'], ['/sort/0 invalid_sort']],
        [['title.x'], ['/sort/0 invalid_sort']],
        [['category.name', '-category_id.name'], ['/sort/1 repeated']],
        [
          ['', '-'],
          ['/sort/0 invalid_sort', '/sort/1 invalid_sort'],
        ],
        [['title', 'score', 'rating', 'pinned', 'id'], ['/sort too_many']],
        ['title', ['/sort wrong_type']],
        [[1], ['/sort/0 wrong_type']],
        [
          ['__proto__', 'constructor'],
          ['/sort/0 invalid_sort', '/sort/1 invalid_sort'],
        ],
      ])('%j is refused', async (sort, expected) => {
        expect(outcomeOf(await query({ sort }))).toEqual([422, 'validation_failed', ...expected]);
      });
    });

    describe('pages', () => {
      test('have a limit, an offset and a count', async () => {
        const first = await query({ limit: 2, offset: 1, count: 'exact' });
        expect(first.headers.get('cache-control')).toBe('no-store');
        expect(first.body.page).toEqual({ limit: 2, has_more: true, next_cursor: expect.any(String), total: 5 });
        expect(first.body.data.map(({ title }: Record) => title)).toEqual(['b', 'c d']);
        expect((await query({ count: 'estimated' })).body.page).toEqual({
          limit: 20,
          has_more: false,
          next_cursor: null,
          total: 5,
          total_is_estimate: false,
        });
        expect((await query({ limit: 5 })).body.page).toEqual({ limit: 5, has_more: false, next_cursor: null });
      });

      test('may change their limit, fields, expands and count, and nothing else', async () => {
        const asked = { filter: 'title != $x', params: { x: 'y' }, sort: ['-title'], limit: 1 };
        const cursor: string = (await query(asked)).body.page.next_cursor;
        const next = await query({ ...asked, cursor, limit: 2, fields: [], expand: { author: true }, count: 'exact' });
        expect([next.body.data.length, next.body.page.total]).toEqual([2, 5]);
        const others = [
          [{ ...asked, filter: 'title != $x ' }, ann],
          [{ ...asked, params: { x: 'z' } }, ann],
          [{ ...asked, sort: ['title'] }, ann],
          [{ ...asked, sort: ['-title', 'id'] }, ann],
          [asked, bob],
        ] as const;
        for (const [body, user] of others)
          expect(outcomeOf(await query({ ...body, cursor }, user))).toEqual([400, 'invalid_cursor']);
        const forged = [`${cursor}A`, cursor.slice(1), '', 'x', `${cursor}=`, cursor.replace(/.$/, '-')];
        for (const each of forged)
          expect(outcomeOf(await query({ ...asked, cursor: each }))).toEqual([400, 'invalid_cursor']);
        expect(outcomeOf(await query({ cursor }, ann, 'categories'))).toEqual([400, 'invalid_cursor']);
        expect(outcomeOf(await query({ ...asked, cursor, offset: 0 }))).toEqual([
          422,
          'validation_failed',
          '/cursor invalid_value',
        ]);
      });

      test('pages show every record that stays in place once, while others come and go', async () => {
        const made: string[] = [];
        for (const name of ['k2', 'k4', 'k6', 'k8']) made.push(String((await make(ann, 'counters', { name })).id));
        const ask = { filter: 'name starts with "k"', sort: ['-name'], limit: 1 };
        const names: unknown[] = [];
        let cursor: string | null = null;
        const changes: (() => Promise<unknown>)[] = [
          () => make(ann, 'counters', { name: 'k9' }),
          () => ann.client.delete(`/api/counters/${made[2]}`),
          () => make(ann, 'counters', { name: 'k5' }),
        ];
        do {
          const { body } = await query({ ...ask, cursor }, ann, 'counters');
          names.push(...body.data.map(({ name }: Record) => name));
          cursor = body.page.next_cursor;
          await changes.shift()?.();
        } while (cursor !== null);
        expect(names).toEqual(['k8', 'k6', 'k4', 'k2']);
      });
    });

    describe('fields and expand', () => {
      test('choose what comes', async () => {
        const { body } = await query({
          filter: 'title = "a"',
          fields: ['score', 'title'],
          expand: { category: { fields: [] } },
        });
        expect(body.data).toEqual([
          { id: expect.any(String), title: 'a', score: 3, expand: { category: { id: news.id } } },
        ]);
      });

      test('go three levels deep, with a filter, an order and a limit of their own', async () => {
        const { body } = await query({
          filter: 'category.name = "News"',
          fields: ['title'],
          sort: ['title'],
          expand: {
            comments: { fields: ['text'], sort: ['-text'], limit: 2 },
            category: {
              fields: ['name'],
              expand: {
                posts: {
                  fields: ['title'],
                  filter: 'title != $not',
                  params: { not: 'a' },
                  expand: { author: { fields: ['email'] }, comments: { filter: 'text = "none"' } },
                },
              },
            },
          },
        });
        const author = (user: User | undefined) => user && { id: user.id, email: user.email };
        const inner = (title: string, user?: User) => ({
          id: expect.any(String),
          title,
          expand: { author: author(user) ?? null, comments: [] },
        });
        const posts = [inner('c d', ann), inner('bob, seen')];
        const category = { id: news.id, name: 'News', expand: { posts } };
        const shown = body.data.map(({ id: _, ...rest }: Record) => rest);
        const comments = [{ id: expect.any(String), text: 'four' }];
        expect(shown).toEqual([
          { title: 'a', expand: { comments, category } },
          { title: 'bob, seen', expand: { comments: [], category } },
          { title: 'c d', expand: { comments: [], category } },
        ]);
        const cut = await query({
          filter: 'score is null and author = @me',
          expand: { comments: { limit: 2, sort: ['-text'] } },
        });
        expect(cut.body.data[0].expand.comments.map(({ text }: Record) => text)).toEqual(['two', 'three']);
        expect(cut.body.data[0].expand_more).toEqual(['comments']);
      });

      test('counts the related records that may be read', async () => {
        const expand = { comments: { count: true, limit: 1, filter: 'text != "two"' } };
        const { body } = await query({ fields: ['title'], sort: ['title'], expand });
        expect(
          body.data.map(({ title, expand: { comments, comments_count }, expand_more }: Answer['body']) => [
            title,
            comments.length,
            comments_count,
            expand_more,
          ]),
        ).toEqual([
          ['a', 1, 1, undefined],
          ['b', 0, 0, undefined],
          ['bob, seen', 0, 0, undefined],
          ['c d', 0, 0, undefined],
          ['ünï +😀', 1, 2, ['comments']],
        ]);
        const inner = { posts: { count: true, limit: 0 } };
        const found = await query({
          filter: 'title = "a"',
          fields: [],
          expand: { category: { fields: [], expand: inner } },
        });
        // The post of bob that is a draft is hidden.
        expect(found.body.data[0].expand.category.expand).toEqual({ posts: [], posts_count: 3 });
      });

      const deep = { category: { expand: { posts: { expand: { category: { expand: { posts: true } } } } } } };
      const wide = Object.fromEntries(['author', 'category', 'cover', 'tags', 'comments'].map((name) => [name, true]));
      test.each<[object, string[]]>([
        [{ fields: ['titel'] }, ['/fields/0 unknown_name']],
        [{ fields: ['comments'] }, ['/fields/0 unknown_name']],
        [{ fields: ['title', 'title'] }, ['/fields/1 repeated']],
        [{ fields: 'title' }, ['/fields wrong_type']],
        [{ expand: { autor: true } }, ['/expand/autor unknown_relation']],
        [{ expand: { title: true } }, ['/expand/title unknown_relation']],
        [{ expand: { author: false } }, ['/expand/author wrong_type']],
        [{ expand: ['author'] }, ['/expand wrong_type']],
        [
          { expand: { comments: { count: 1, limit: 0 } } },
          ['/expand/comments/count wrong_type', '/expand/comments/limit invalid_value'],
        ],
        [{ expand: { author: { count: true } } }, ['/expand/author/count unknown_key']],
        [
          { expand: { author: { limit: 1, nope: 1 } } },
          ['/expand/author/limit unknown_key', '/expand/author/nope unknown_key'],
        ],
        [
          { expand: { comments: { limit: 101, sort: ['x'] } } },
          ['/expand/comments/limit invalid_value', '/expand/comments/sort/0 invalid_sort'],
        ],
        [{ expand: { comments: { params: { a: 1 } } } }, ['/expand/comments/params/a invalid_param']],
        [{ expand: deep }, ['/expand/category/expand/posts/expand/category/expand too_deep']],
        [
          { expand: { ...wide, category: { expand: { posts: { expand: wide } } } } },
          ['/expand/category/expand/posts/expand too_many'],
        ],
        [
          { limit: 0, offset: -1, count: 'all', cursor: 1 },
          ['/cursor wrong_type', '/limit invalid_value', '/offset invalid_value', '/count invalid_value'],
        ],
        [
          { limit: '1', offset: 1.5, count: true, filter: 1, params: [] },
          [
            '/count wrong_type',
            '/filter wrong_type',
            '/limit wrong_type',
            '/offset invalid_value',
            '/params wrong_type',
          ],
        ],
        [{ limits: 1 }, ['/limits unknown_key']],
        [[], [' not_an_object']],
      ])('%j is refused', async (body, expected) => {
        const [status, code, ...found] = outcomeOf(await query(body));
        expect([status, code, found.toSorted()]).toEqual([422, 'validation_failed', expected.toSorted()]);
      });

      test('an error in a filter of an expand is at its pointer, and no params reach in', async () => {
        const { status, body } = await query({
          filter: 'title = $t',
          params: { t: 'a' },
          expand: { category: { expand: { posts: { filter: 'title = $t' } } } },
        });
        expect([status, body.code, body.errors[0].pointer, body.errors[0].code]).toEqual([
          400,
          'filter_invalid',
          '/expand/category/expand/posts/filter',
          'param_missing',
        ]);
      });
    });

    test('a query is a read by the list rule, under the order of checks', async () => {
      expect(outcomeOf(await service.anonymous.post('/api/posts/query', {}))).toEqual([401, 'unauthenticated']);
      expect(outcomeOf(await query({}, ann, 'nothing'))).toEqual([404, 'not_found']);
      for (const collection of ['vault', 'locked', 'forms'])
        expect(outcomeOf(await query({ filter: 'x' }, ann, collection))).toEqual([403, 'forbidden']);
      expect(outcomeOf(await ann.client.send('POST', '/api/posts/query', { raw: '{}' }))).toEqual([
        415,
        'unsupported_media_type',
      ]);
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const answer = await ann.client.send(method, '/api/posts/query');
        expect([...outcomeOf(answer), answer.headers.get('allow')]).toEqual([405, 'method_not_allowed', 'POST']);
      }
      // The keys of the address are read by policies: no plain list can meet this one.
      const own = await make(ann, 'forms', { kind: 'open', owner: ann.id });
      const { body } = await ann.client.post(`/api/forms/query?owner_id=${ann.id}&any=1`, { filter: 'kind = "open"' });
      expect(body.data.map(({ id }: Record) => id)).toEqual([own.id]);
    });

    test('answers the same where a record is hidden and where there is none', async () => {
      const hidden = { filter: 'title = "bob, hidden"', count: 'exact', expand: { author: true } };
      const none = { ...hidden, filter: 'title = "bob, hiddem"' };
      expect(saidBy(await query(hidden))).toEqual(saidBy(await query(none)));
    });
  },
  { schema: ROUTES_SCHEMA },
);
