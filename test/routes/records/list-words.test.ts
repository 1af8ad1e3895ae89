// @module-tag partitions
/** The words of a query in the query string of a list: `filter`, `param.…`, `sort`, `fields`, `cursor`, `count`. */
import { beforeAll, expect, test } from 'vitest';
import type { Answer } from '../../support/client.ts';
import { describeRoutes, ROUTES_SCHEMA, type User } from '../../support/service.ts';

type Words = readonly (readonly [word: string, value: string])[];

describeRoutes(
  'lists with the words of a query',
  (service) => {
    let ann: User;
    let bob: User;

    const list = (words: Words, user = ann): Promise<Answer> =>
      user.client.get(`/api/posts?${words.map(([word, value]) => `${word}=${encodeURIComponent(value)}`).join('&')}`);
    const titles = async (words: Words, user = ann): Promise<unknown> => {
      const { body, text } = await list(words, user);
      return body.data === undefined ? text : body.data.map(({ title }: { title: string }) => title);
    };
    const refusal = async (words: Words): Promise<unknown> => {
      const { status, body } = await list(words);
      return [status, body.code, body.errors.map(({ parameter }: { parameter: string }) => parameter)];
    };

    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user(), service.user()]);
      const make = (user: User, data: object) => user.client.post('/api/posts', { data });
      for (const [title, score] of [
        ['a', 3],
        ['b', -2],
        ['c', 3],
        ['d', 7],
      ] as const)
        await make(ann, { title, score });
      await make(ann, { title: 'e', status: 'published', pinned: true });
      await make(bob, { title: 'hidden', score: 3 });
    });

    test('a filter stands beside the exact filters, and under the list rule', async () => {
      expect(await titles([['filter', 'score = 3']])).toEqual(['a', 'c']);
      expect(
        await titles([
          ['filter', 'score > 0 and title != "a"'],
          ['score', '3'],
        ]),
      ).toEqual(['c']);
      expect(await titles([['filter', 'score = 3 or author = @me']], bob)).toEqual(['hidden']);
      expect(await titles([['filter', 'title = "hidden"']])).toEqual([]);
    });

    test('params are text, and take the types of their places', async () => {
      expect(
        await titles([
          ['filter', 'score > $least'],
          ['param.least', '3'],
        ]),
      ).toEqual(['d']);
      expect(
        await titles([
          ['filter', 'pinned = $p'],
          ['param.p', 'true'],
        ]),
      ).toEqual(['e']);
      expect(
        await titles([
          ['filter', 'title in $t'],
          ['param.t', 'a'],
          ['param.t', 'd'],
        ]),
      ).toEqual(['a', 'd']);
      expect(
        await titles([
          ['filter', 'title in $t'],
          ['param.t', 'c'],
        ]),
      ).toEqual(['c']);
      expect(
        await titles([
          ['filter', 'created_at < $t'],
          ['param.t', '2000-01-01T00:00:00Z'],
        ]),
      ).toEqual([]);
      expect(
        await titles([
          ['filter', 'title = $t'],
          ['param.t', '3'],
        ]),
      ).toEqual([]);
    });

    test('sort orders, and fields select', async () => {
      const { body } = await list([
        ['filter', 'score is not null'],
        ['sort', '-score,title'],
        ['fields', 'title,score'],
      ]);
      expect(body.data.map(({ title, score }: { title: string; score: number }) => [title, score])).toEqual([
        ['d', 7],
        ['a', 3],
        ['c', 3],
        ['b', -2],
      ]);
      expect(Object.keys(body.data[0]).sort()).toEqual(['id', 'score', 'title']);
      expect(body.page).toEqual({ limit: 20, offset: 0, has_more: false, next_cursor: null });
    });

    test.each(['sort', 'fields'])('an empty name in `%s` is an error that says so', async (word) => {
      for (const names of ['', 'title,', 'title,,score']) {
        const { status, body } = await list([[word, names]]);
        expect([status, body.code, body.detail]).toEqual([
          422,
          'validation_failed',
          'a name is empty; expected the name of a field',
        ]);
      }
    });

    test('pages follow each other by cursor, and a cursor belongs to its list', async () => {
      const words: Words = [
        ['sort', '-title'],
        ['limit', '2'],
        ['count', 'exact'],
      ];
      const met: unknown[] = [];
      let cursor = '';
      do {
        const { body, text } = await list([...words, ['cursor', cursor]]);
        if (body.data === undefined) throw new Error(text);
        met.push(...body.data.map(({ title }: { title: string }) => title));
        expect(body.page).toMatchObject({ limit: 2, total: 5 });
        cursor = body.page.next_cursor ?? '';
      } while (cursor !== '');
      expect(met).toEqual(['e', 'd', 'c', 'b', 'a']);
      const { body } = await list(words);
      const next = body.page.next_cursor as string;
      expect(
        await refusal([
          ['sort', 'title'],
          ['cursor', next],
        ]),
      ).toEqual([400, 'invalid_cursor', expect.anything()]);
      expect(
        await refusal([
          ['sort', '-title'],
          ['score', '3'],
          ['cursor', next],
        ]),
      ).toEqual([400, 'invalid_cursor', expect.anything()]);
      expect((await list([...words, ['cursor', next]], bob)).body.code).toBe('invalid_cursor');
    });

    test.each([
      ['fields=id', 5],
      ['sort=title', 5],
      ['filter=score%20>%200', 3],
      ['filter=score%20>%20$s&param.s=3', 1],
      ['cursor=', 5],
    ])('Prefer: count=exact counts beside %s', async (words, total) => {
      const { body, headers } = await ann.client.get(`/api/posts?limit=1&${words}`, { Prefer: 'count=exact' });
      expect([body.page.total, headers.get('preference-applied')]).toEqual([total, 'count=exact']);
    });

    test('the count of the word replaces that of Prefer', async () => {
      const counted = await ann.client.get('/api/posts?limit=1&count=none', { Prefer: 'count=exact' });
      expect([counted.body.page.total, counted.headers.get('preference-applied')]).toEqual([undefined, null]);
      expect((await list([['count', 'estimated']])).body.page).toMatchObject({ total: 5, total_is_estimate: false });
    });

    test.each<readonly [string, Words, unknown]>([
      ['a filter that does not parse', [['filter', 'score >']], [400, 'filter_invalid', ['filter']]],
      ['an unknown name', [['filter', 'scor = 1']], [400, 'filter_invalid', ['filter']]],
      ['an empty filter', [['filter', '']], [400, 'filter_invalid', ['filter']]],
      [
        'a filter twice',
        [
          ['filter', 'score = 1'],
          ['filter', 'score = 1'],
        ],
        [400, 'invalid_parameter', ['filter']],
      ],
      [
        'a param of another type',
        [
          ['filter', 'score = $s'],
          ['param.s', 'x'],
        ],
        [422, 'validation_failed', ['param.s']],
      ],
      [
        'a fraction that rounding takes away, beside an int',
        [
          ['filter', 'score = $s'],
          ['param.s', '9007199254740991.4'],
        ],
        [422, 'validation_failed', ['param.s']],
      ],
      ['a param whose name has a slash', [['param.a/b', 'x']], [422, 'validation_failed', ['param.a/b']]],
      ['a param without a filter', [['param.s', 'x']], [422, 'validation_failed', ['param.s']]],
      [
        'a param that the filter does not name',
        [
          ['filter', 'score = 1'],
          ['param.s', 'x'],
        ],
        [422, 'validation_failed', ['param.s']],
      ],
      ['an unknown order', [['sort', 'scor']], [422, 'validation_failed', ['sort']]],
      [
        'the order of people of a field without a folded copy',
        [['sort', 'score:text']],
        [422, 'validation_failed', ['sort']],
      ],
      ['an empty order', [['sort', '']], [422, 'validation_failed', ['sort']]],
      ['an unknown member', [['fields', 'title,titel']], [422, 'validation_failed', ['fields']]],
      ['an unknown count', [['count', 'many']], [422, 'validation_failed', ['count']]],
      ['a cursor of nobody', [['cursor', 'x']], [400, 'invalid_cursor', expect.anything()]],
      [
        'a cursor and an offset',
        [
          ['cursor', 'x'],
          ['offset', '2'],
        ],
        [422, 'validation_failed', ['cursor']],
      ],
      [
        'faults of both kinds',
        [
          ['sort', 'scor'],
          ['titel', 'x'],
        ],
        [400, 'filter_unknown_key', ['titel', 'sort']],
      ],
    ])('a list rejects %s', async (_, words, expected) => {
      expect(await refusal(words)).toEqual(expected);
    });
  },
  { schema: ROUTES_SCHEMA },
);
