/** Filters are compiled once for requests alike, and never for one caller with what another may see. */
import { expect, test } from 'vitest';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { FilterPlan, FilterPlans } from '../../../src/policy/filters/filter-plans.ts';
import type { Catalog } from '../../../src/policy/types.ts';
import type { Readable, Visibility } from '../../../src/policy/visibility.ts';
import { param, plannedParam, raw, type Sql, sql, typedLiteral } from '../../../src/sql.ts';
import { SAMPLE as catalog } from '../sample-catalog.ts';

const rule = (verdict: Readable['verdict'], text = 'TRUE'): Readable => ({
  verdict,
  where: () => raw(text),
  lookUps: [],
});
const seeing = (records: Readable, member?: Readable): Visibility => ({ records: () => records, member: () => member });
const REQUEST = { auth: { id: '0190000a-0000-7000-8000-000000000001' }, now: '2026-01-01T00:00:00.000000Z' };

function sqlOf(text: string, visibility: Visibility, params: Record<string, unknown> = {}): string {
  const { filter, issues } = compileFilter(text, { catalog, collection: 'documents', params });
  expect(issues).toEqual([]);
  const { text: statement, values } = filter!.where('t', REQUEST, visibility);
  return `${statement} ${JSON.stringify(values)}`;
}

const FILTER = 'owner.email = $email or title = "a"';
const CALLERS: Readonly<Record<string, Visibility>> = {
  open: seeing(rule('allow')),
  closed: seeing(rule('deny')),
  some: seeing(rule('depends', 'mine')),
  others: seeing(rule('depends', 'yours')),
  masked: seeing(rule('allow'), rule('deny')),
  'some masked': seeing(rule('allow'), rule('depends', 'shown')),
};

test('every caller gets the condition that a first caller would get', () => {
  const first = Object.values(CALLERS).map((visibility) => {
    // A copy of the catalog has filters of its own.
    const { filter } = compileFilter(FILTER, {
      catalog: { ...catalog },
      collection: 'documents',
      params: { email: 'x' },
    });
    const { text, values } = filter!.where('t', REQUEST, visibility);
    return `${text} ${JSON.stringify(values)}`;
  });
  expect(new Set(first).size).toBe(first.length);
  for (let round = 0; round < 3; round++)
    expect(Object.values(CALLERS).map((visibility) => sqlOf(FILTER, visibility, { email: 'x' }))).toEqual(first);
});

const condition = (text: string, params: Record<string, unknown> = {}, visibility = CALLERS.some!): Sql => {
  const { filter, issues } = compileFilter(text, { catalog, collection: 'documents', params });
  expect(issues).toEqual([]);
  return filter!.where('t', REQUEST, visibility);
};
const ID = '0190000b-0000-7000-8000-00000000000';

type Literals = readonly [pattern: string, one: string | number, other: string | number, values: readonly unknown[]];
test.each<Literals>([
  ['title = "?"', 'secret', 'x', ['secret']],
  ['title != "?"', 'secret', `'; DROP TABLE t; --`, ['secret']],
  ['title in ["?", "a"]', 'secret', '$1', [['secret', 'a']]],
  ['title not in ["?", "a"]', 'secret', '"', [['secret', 'a']]],
  ['title >= "?"', 'secret', '\\', ['secret']],
  ['title starts with "?"', 'secret', '%', ['secret', 'secreu', 'secret']],
  ['not (title starts with "?")', 'secret', 'x', ['secret']],
  ['title contains "?"', 'secret', 'x', ['secret']],
  ['not (title ends with "?")', 'secret', 'x', ['secret', 'secret']],
  ['title matches "?"', 'secret', 'x', ['%secret%']],
  ['score > ?', 271_828, 3, [271_828]],
  ['score in [?, 1.5, 2]', 271_828, 3, [[271_828, 2]]],
  ['rating = ?', 2.7181, 9_007_199_254_740_992, [2.7181]],
  ['created_at < "?"', '2718-02-08T00:00:00Z', '1900-01-01T00:00:00+02:00', ['2718-02-08T00:00:00.000000Z']],
  ['owner_id = "?"', `${ID}1`, `${ID}2`, [`${ID}1`]],
  ['owner.email = "?"', 'secret', 'x', ['secret']],
  ['any(tags as t, t.label = "?")', 'secret', 'x', ['secret']],
  ['none(tags as t, t.label contains "?")', 'secret', 'x', ['secret']],
  ['count(tags as t, t.label = "?") < 3', 'secret', 'x', ['secret', 4, 3]],
  ['count(tags) >= ?', 2_718, 5, [2_719, 2_718]],
])('literals of a filter are parameters, and equal filters share their text: %s', (pattern, one, other, values) => {
  for (const visibility of Object.values(CALLERS)) {
    const [first, second] = [one, other].map((value) => {
      const spelled = typeof value === 'string' ? JSON.stringify(value).slice(1, -1) : String(value);
      return condition(pattern.replace('?', spelled), {}, visibility);
    }) as [Sql, Sql];
    expect(first.text).not.toMatch(/secre|2\.?718|0190/);
    expect(second.text).toBe(first.text);
    // A filter on members that the caller may not read leaves nothing to plan.
    expect([first.isPlannedAnew, second.isPlannedAnew]).toEqual(
      first.params.length > 0 ? [true, true] : [false, false],
    );
    expect(first.params.every(({ isPlannedFor }) => isPlannedFor)).toBe(true);
    if (visibility !== CALLERS.open) continue;
    expect(first.params.length).toBeGreaterThan(0);
    expect(first.values).toEqual(values);
  }
});

test('a bool is part of the condition, and bare: its index matches nothing else', () => {
  expect(condition('pinned = true').text).toBe('"t"."pinned"');
  expect(condition('pinned != true').text).toBe('NOT "t"."pinned"');
});

test.each([
  ['title = "a"', 'CASE WHEN shown THEN "t"."title" END = $1::text'],
  ['title in ["a", "b"]', 'CASE WHEN shown THEN "t"."title" END = ANY($1::text[])'],
  ['pinned', 'CASE WHEN shown THEN "t"."pinned" END'],
  ['score = rating', 'CASE WHEN shown THEN "t"."score" END = CASE WHEN shown THEN "t"."rating" END'],
  ['title is null', 'CASE WHEN shown THEN "t"."title" END IS NULL'],
  ['due_at is not null', 'CASE WHEN shown THEN "t"."due_at" END IS NOT NULL'],
])('no index finds a masked column, so that the time of an answer reveals no hidden value: %s', (text, expected) => {
  expect(condition(text, {}, CALLERS['some masked']).text).toBe(expected);
});

test('a param is not planned for, and a literal beside it is', () => {
  expect(condition('title = $x', { x: 'a' }).isPlannedAnew).toBe(false);
  const both = condition('title = $x and status = "draft"', { x: 'a' });
  expect(both.params).toEqual([param('text', 'a'), plannedParam('text', 'draft')]);
});

test('the rules that a filter goes through keep their literals', () => {
  const rules = seeing({ ...rule('depends'), where: () => sql`x = ${typedLiteral('text', 'of the rule')}` });
  const { text, values } = condition('any(tags as t, t.label = "secret")', {}, rules);
  expect(text).toContain("x = 'of the rule'::text");
  expect(values).toEqual(['secret']);
});

test('a filter whose values are params shares the text of its statements', () => {
  const ask = (email: string) => {
    const { filter } = compileFilter('owner.email = $email', { catalog, collection: 'documents', params: { email } });
    return sql`SELECT 1 WHERE ${filter!.where('t', REQUEST, CALLERS.some!)}`;
  };
  expect(ask('a').shape).toBe(ask('b').shape);
  expect([ask('a').values, ask('b').values]).toEqual([['a'], ['b']]);
});

test('a cached filter takes the values of its request, and each kind of value has its own filter', () => {
  const { open } = CALLERS as { readonly open: Visibility };
  const values = ['a', null, 'b'].map((email) => sqlOf(FILTER, open, { email }));
  expect(values[0]).toContain('["a","a"]');
  expect(values[1]).not.toContain('"email"');
  expect(values[2]).toBe(values[0]!.replace('["a","a"]', '["a","b"]'));
  expect(
    compileFilter('$x is null', { catalog, collection: 'documents', params: { x: ['a'] } }).filter?.issues,
  ).toEqual([]);
  expect(compileFilter('$x is null', { catalog, collection: 'documents', params: { x: 1 } }).filter?.issues).toEqual(
    [],
  );
  const wrong = (x: unknown) =>
    compileFilter('title = $x', { catalog, collection: 'documents', params: { x } }).filter?.issues;
  expect([wrong('a'), wrong(1)?.length, wrong('b'), wrong(2)?.length]).toEqual([[], 1, [], 1]);
});

test('a known filter still checks the params of its request', () => {
  expect(compileFilter('title = $x', { catalog, collection: 'documents', params: { x: 'a' } }).issues).toEqual([]);
  const missing = compileFilter('title = $x', { catalog, collection: 'documents', params: {} });
  expect(missing.issues.map(({ code }) => code)).toEqual(['param_missing']);
  const more = compileFilter('title = $x', { catalog, collection: 'documents', params: { x: 'a', y: 'b' } });
  expect(more.filter!.issues).toEqual([{ name: 'y', message: 'the filter names no `$y`' }]);
});

test('the cache keeps the latest filters, and fewer of long ones', () => {
  const plans = new FilterPlans();
  const plan = (): FilterPlan => new FilterPlan({ kind: 'const', value: true, span: { start: 0, end: 0 } }, catalog);
  for (let i = 0; i < 600; i++) {
    plans.add(`filter ${i}`, plan());
    plans.get('filter 0');
  }
  const kept = Array.from({ length: 600 }, (_, i) => i).filter((i) => plans.get(`filter ${i}`) !== undefined);
  expect(kept.length).toBe(512);
  expect(kept.slice(0, 2)).toEqual([0, 89]);
  const tooLong = 'x'.repeat(8 * 1024 + 1);
  plans.add(tooLong, plan());
  expect([plans.get(tooLong), plans.get('filter 89')]).toEqual([undefined, expect.any(FilterPlan)]);
  const longKey = (i: number): string => String(i).padEnd(8 * 1024, ' ');
  for (let i = 0; i < 100; i++) plans.add(longKey(i), plan());
  const long = Array.from({ length: 100 }, (_, i) => i).filter((i) => plans.get(longKey(i)) !== undefined);
  expect(long.length).toBeLessThanOrEqual(16);
  expect(long.at(-1)).toBe(99);
});

test('unknown params evict no filter', () => {
  let reads = 0;
  const own: Catalog = {
    ...catalog,
    get collections() {
      reads++;
      return catalog.collections;
    },
  };
  const place = { catalog: own, collection: 'documents' };
  compileFilter('title = $x', { ...place, params: { x: 'a' } });
  for (let i = 0; i < 40; i++) {
    const { filter } = compileFilter('title = $x', { ...place, params: { x: 'a', [`y${i}`.padEnd(9_000, 'y')]: 1 } });
    expect(filter!.issues).toHaveLength(1);
  }
  const before = reads;
  // A filter that is known is not checked again.
  compileFilter('title = $x', { ...place, params: { x: 'b' } });
  expect([before > 0, reads - before]).toEqual([true, 0]);
});
