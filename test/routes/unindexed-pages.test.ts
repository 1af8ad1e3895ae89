/** The metric of pages that are filtered or sorted by fields without an index: which requests it counts, and under which names. */
import { beforeAll, expect, test } from 'vitest';
import { describeOnBoth, ROUTES_SCHEMA, type User } from '../support/service.ts';
import { until } from '../support/until.ts';

const NAME = 'bylaw_unindexed_pages_total';

describeOnBoth(
  'pages that no index serves',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });

    test('the service counts unindexed pages, and no others, by collection, field and use', async () => {
      const { id } = (await ann.client.post('/api/posts', { data: { title: 'x' } })).body.data;
      const lists = [
        ['', []],
        [`?id=${id}`, []],
        ['?slug=x', []],
        ['?title=x', ['posts title filter']],
        ['?title=x&score=1', ['posts title filter', 'posts score filter']],
        // These find few records, of which the title is asked.
        [`?title=x&author=${ann.id}`, []],
        [`?title=x&tags_any=${id}`, []],
        ['?title=x&slug=x', []],
      ] as const;
      const queries = [
        [{}, []],
        [{ sort: ['-created_at'] }, []],
        [{ sort: ['-updated_at'] }, ['posts updated_at sort']],
        [{ sort: ['category.name'] }, []],
        [{ sort: ['title'], filter: 'slug = "x"' }, []],
        [{ sort: ['title'], filter: 'rating > 1' }, ['posts rating filter', 'posts title sort']],
        [{ filter: 'rating is null' }, ['posts rating filter']],
        [{ filter: 'any(comments as c, c.text = "x") and rating > 1' }, []],
        // Each part of an `or` needs an index, and one part of an `and`.
        [{ filter: 'rating > 1 or slug = "x"' }, ['posts rating filter']],
        [{ filter: `author = "${ann.id}" or slug = "x"`, sort: ['title'] }, []],
        [{ filter: '(rating > 1 or slug = "x") and title = "x"' }, ['posts rating filter', 'posts title filter']],
        [{ filter: '(rating > 1 or slug = "x") and slug = "y"' }, []],
        [{ filter: '(rating > 1 and slug = "x") or slug = "y"' }, []],
        [{ filter: 'rating > 1 and rating < 3' }, ['posts rating filter']],
        [{ filter: 'category.name = "x" or rating > 1' }, ['posts rating filter']],
        [{ filter: 'category.name = "x" and rating > 1' }, []],
      ] as const;
      const expected: string[] = [];
      for (const [query, counted] of lists) {
        expect([query, (await ann.client.get(`/api/posts${query}`)).status]).toEqual([query, 200]);
        expected.push(...counted);
      }
      for (const [body, counted] of queries) {
        const { status, text } = await ann.client.post('/api/posts/query', body);
        expect([text, status]).toEqual([text, 200]);
        expected.push(...counted);
      }
      const totals = new Map<string, number>();
      for (const name of expected) totals.set(name, (totals.get(name) ?? 0) + 1);
      // Metrics are remembered for a second.
      let counted: ReadonlyMap<string, number> = new Map();
      const isFresh = async (): Promise<boolean> => {
        counted = await read();
        return counted.size === totals.size;
      };
      await until('the metrics are fresh', isFresh);
      expect(counted).toEqual(totals);
    });

    const read = async (): Promise<ReadonlyMap<string, number>> => {
      const { text } = await service.anonymous.get('/metrics', { Accept: 'text/plain' });
      const lines = text.split('\n').filter((line) => line.startsWith(`${NAME}{`));
      return new Map(
        lines.map((line) => {
          const [, collection, field, use, count] = /collection="(.*)",field="(.*)",use="(.*)"\} (\d+)$/.exec(line)!;
          return [`${collection} ${field} ${use}`, Number(count)];
        }),
      );
    };
  },
  { schema: ROUTES_SCHEMA },
);
