// @module-tag long
/** Hostile queries end in time, and others go on after them; query-visibility.test.ts has one with distributed collections. */
import { beforeAll, describe, expect, test } from 'vitest';
import { raw } from '../../../src/sql.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeOnOne, type User } from '../../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  users:
    relations: { posts: { kind: has_many, collection: posts, via: author } }
  posts:
    fields: { title: { type: string, required: true }, n: int }
    relations:
      author: { kind: belongs_to, collection: users }
      tags: { kind: many_to_many, collection: tags }
    access: { view: true, create: true }
  tags:
    fields: { name: { type: string, required: true } }
    access: { view: true, create: true }
`;
const ROWS = 3_000;

describeOnOne(
  'hostile queries',
  (service) => {
    let user: User;
    beforeAll(async () => {
      user = await service.user();
      await service.app.db.write(
        raw(`
        INSERT INTO posts (id, created_at, updated_at, title, n, author_id)
        SELECT gen_random_uuid(), now(), now(), 'post ' || n, n, '${user.id}'
          FROM generate_series(1, ${ROWS}) n
        RETURNING 1`),
      );
    });

    const HOSTILE = [
      'count(author.posts as p, p.title contains title) > 5000',
      'any(author.posts as p, p.n > n and p.title contains "zz" and p.title contains title)',
      'any(author.posts as p, any(p.author.posts as q, q.n > p.n and p.n > n and q.title contains "zz"))',
      'none(author.posts as p, none(p.author.posts as q, none(q.author.posts as r, r.n > q.n and q.n > p.n and p.n > n)))',
      'count(author.posts as p, count(p.author.posts as q, q.title contains p.title) > 5000) > 5000',
    ];
    const BODIES: readonly (readonly [string, string, object])[] = [
      ...HOSTILE.slice(0, 3).map((filter) => [filter, 'query', { filter }] as const),
      [`${HOSTILE[3]}, sorted`, 'query', { filter: HOSTILE[3], sort: ['author.email'], count: 'exact' }],
      [`${HOSTILE[4]}, counted`, 'aggregate', { filter: HOSTILE[4], measures: { n: 'count' } }],
    ];

    const outcomes = new Map<string, unknown>();

    describe('end', () => {
      test.each(BODIES)('%s', async (name, route, body) => {
        const since = performance.now();
        const ended = await user.client.post(`/api/posts/${route}`, body);
        const { status, body: answer } = ended;
        outcomes.set(name, outcomeOf(ended));
        expect([200, 400]).toContain(status);
        if (status === 400) expect(answer.code).toBe('query_too_expensive');
        // A loop that has begun comes to its end, however often it is entered; without a limit it takes hours.
        expect(performance.now() - since).toBeLessThan(40_000);
        const next = await user.client.post('/api/posts/query', { filter: 'n = 1' });
        expect(next.body.data).toHaveLength(1);
      });
    });

    test('some of them as too expensive', () => {
      expect(outcomes.get(HOSTILE[2]!)).toEqual([400, 'query_too_expensive']);
    });
  },
  { schema: SCHEMA, change: (schema) => ({ ...schema, limits: { ...schema.limits, queryTime: 0.4 } }) },
);
