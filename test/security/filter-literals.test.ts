// @module-tag long
/** No literal of a filter is text of a statement, in any comparison. */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { StatementBatch } from '../../src/database/pg-internals.ts';
import { describeOnBoth, type User } from '../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  users:
    relations: { notes: { kind: has_many, collection: notes, via: owner } }
  tags:
    fields: { label: { type: string, required: true } }
    access: { view: '@record.label != "of the rule"', create: true }
  notes:
    fields: { title: { type: string, search: true }, score: { type: int, index: true }, rating: float, due_at: datetime }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      parent: { kind: belongs_to, collection: notes }
      tags: { kind: many_to_many, collection: tags }
    access: { view: '@record.owner = @request.auth.id or @record.title = "of the rule"', create: true }
`;

/** As the driver takes it. */
interface Sent {
  readonly text: string;
  readonly name?: string | undefined;
  readonly values?: readonly unknown[];
}

/** `?` is a literal, given twice. Nothing else contains these. */
const TEXTS = ['zqmarker', `zq'\\" $1`] as const;
const WHOLE = [8_271_828, 8_271_829] as const;
const FILTERS: readonly (readonly [filter: string, literals: readonly [string | number, string | number]])[] = [
  ['title = "?"', TEXTS],
  ['title != "?"', TEXTS],
  ['title in ["?", "a"]', TEXTS],
  ['title not in ["a", "?"]', TEXTS],
  ['title < "?"', TEXTS],
  ['title contains "?"', TEXTS],
  ['title starts with "?"', TEXTS],
  ['title ends with "?"', TEXTS],
  ['title matches "?"', TEXTS],
  ['not (title = "?" or score > 1)', TEXTS],
  ['score = ?', WHOLE],
  ['score > ?', [8_271_828.5, 8_271_829.5]],
  ['score in [1, ?]', WHOLE],
  ['rating <= ?', [82.718_28, 82.718_29]],
  ['rating = ?', WHOLE],
  ['due_at > "?"', ['2099-08-27T18:28:00Z', '2098-08-27T18:28:00Z']],
  ['id = "?"', ['01908271-8280-7000-8000-000000000001', '01908271-8280-7000-8000-000000000002']],
  ['parent.title = "?"', TEXTS],
  ['any(tags as t, t.label = "?")', TEXTS],
  ['all(tags as t, t.label != "?")', TEXTS],
  ['none(owner.notes as n, n.title contains "?")', TEXTS],
  ['count(tags as t, t.label = "?") < 2', TEXTS],
  ['count(tags) < ?', [82_718, 82_719]],
  ['any(ancestors(parent by parent) as a, a.title = "?")', TEXTS],
];
const MARKER = /zq|82\.?71|1828|09[89]-08/;

describeOnBoth(
  'literals of filters',
  (service) => {
    const sent: Sent[] = [];
    const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
    let user: User;

    beforeAll(async () => {
      user = await service.user();
      for (const title of [...TEXTS, 'of the rule']) {
        const { status } = await user.client.post('/api/notes', { data: { title, score: 8_271_828 } });
        expect(status).toBe(201);
      }
      vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: unknown, ...args: unknown[]) {
        const [batch] = args as [string | StatementBatch];
        if (typeof batch === 'string') sent.push({ text: batch });
        else
          for (const { statement, name } of batch.statements)
            sent.push({ text: statement.text, values: statement.values, name });
        return query.apply(this, args);
      } as never);
    });
    afterEach(() => sent.splice(0));
    afterAll(() => vi.restoreAllMocks());

    const ask = async (route: string, body: object): Promise<readonly Sent[]> => {
      sent.splice(0);
      const { status, text } = await user.client.post(`/api/notes/${route}`, body);
      expect([status, text]).toEqual([200, text]);
      return sent.splice(0).filter((each) => /"(?:notes|tags)"/.test(each.text));
    };
    const isOfFilter = ({ values = [] }: Sent): boolean => MARKER.test(JSON.stringify(values));

    test.each(FILTERS)('%s', async (pattern, literals) => {
      const filters = literals.map((literal) =>
        pattern.replace('?', String(typeof literal === 'string' ? JSON.stringify(literal).slice(1, -1) : literal)),
      );
      const bodies = (filter: string): readonly (readonly [string, object])[] => [
        ['query', { filter, sort: ['-score'], count: 'exact' }],
        ['query', { filter, count: 'estimated' }],
        ['aggregate', { filter, measures: { n: 'count' } }],
        ['query', { expand: { owner: { expand: { notes: { filter } } } } }],
      ];
      const texts = filters.map(() => [] as string[]);
      for (const [i, filter] of filters.entries()) {
        for (const [route, body] of bodies(filter)) {
          const all = await ask(route, body);
          for (const { text } of all) expect(text).not.toMatch(MARKER);
          const ofFilter = all.filter(isOfFilter);
          expect(ofFilter.length).toBeGreaterThan(0);
          texts[i]!.push(...ofFilter.map(({ text }) => text));
        }
      }
      // A page and its count are asked for at once.
      expect(texts[1]!.sort()).toEqual(texts[0]!.sort());
    });

    test('a literal finds the records that it names', async () => {
      for (const title of TEXTS) {
        const { body } = await user.client.post('/api/notes/query', { filter: `title = ${JSON.stringify(title)}` });
        expect(body.data.map((note: { readonly title: string }) => note.title)).toEqual([title]);
      }
      const { body } = await user.client.post('/api/notes/query', {
        filter: 'score = 8271828.0 and title matches "ZQ"',
      });
      expect(body.data).toHaveLength(2);
    });

    test('literals of rules, and params, leave a statement its name', async () => {
      const body = { filter: 'score < $n', params: { n: WHOLE[0] } };
      await ask('query', body);
      for (const { text, name, values } of await ask('query', body)) {
        expect([name, values]).toEqual([expect.any(String), expect.arrayContaining([WHOLE[0]])]);
        expect(text).toContain("'of the rule'::text");
      }
    });
  },
  { schema: SCHEMA },
);
