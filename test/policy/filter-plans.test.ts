/** Filters are compiled once for requests alike, and never for one caller with what another may see. */
import { expect, test } from 'vitest';
import { compileFilter } from '../../src/policy/filter.ts';
import { FilterPlan, FilterPlans } from '../../src/policy/filter-plans.ts';
import type { Catalog } from '../../src/policy/types.ts';
import type { Readable, Visibility } from '../../src/policy/visibility.ts';
import { raw, sql } from '../../src/sql.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const rule = (verdict: Readable['verdict'], text = 'TRUE'): Readable => ({ verdict, where: () => raw(text) });
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

test.each([
  'title = "secret"',
  'title in ["secret", "other"]',
  'title starts with "secret"',
  'title contains "secret"',
  'not (title ends with "secret")',
  'title matches "secret"',
  'score > 271828',
  'created_at < "2718-02-08T00:00:00Z"',
  'any(tags as t, t.label = "secret")',
  'count(tags as t, t.label = $x) < 271828',
])('no literal of a filter stays in the cache of SQL: %s', (text) => {
  const { filter, issues } = compileFilter(text, { catalog, collection: 'documents', params: { x: 'a' } });
  expect(issues).toEqual([]);
  const printed = Object.values(CALLERS).map((visibility) => filter!.where('t', REQUEST, visibility));
  const hasLiteral = printed.map((where) => /secret|2718/.test(where.text));
  expect(hasLiteral[0]).toBe(true);
  expect(printed.map(({ shape }) => shape.isCacheable)).toEqual(hasLiteral.map((has) => !has));
});

test('a filter whose values are params shares the text of its statements', () => {
  const ask = (email: string) => {
    const { filter } = compileFilter('owner.email = $email', { catalog, collection: 'documents', params: { email } });
    return sql`SELECT 1 WHERE ${filter!.where('t', REQUEST, CALLERS.some!)}`;
  };
  expect(ask('a').shape).toBe(ask('b').shape);
  expect([ask('a').values, ask('b').values]).toEqual([['a'], ['b']]);
});

test('values are those of the request, and a kind of value has a filter of its own', () => {
  const { open } = CALLERS as { readonly open: Visibility };
  const values = ['a', null, 'b'].map((email) => sqlOf(FILTER, open, { email }));
  expect(values[0]).toContain('["a"]');
  expect(values[1]).not.toContain('"email"');
  expect(values[2]).toBe(values[0]!.replace('["a"]', '["b"]'));
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

test('what filters name is what the request gives, also where the text is known', () => {
  expect(compileFilter('title = $x', { catalog, collection: 'documents', params: { x: 'a' } }).issues).toEqual([]);
  const missing = compileFilter('title = $x', { catalog, collection: 'documents', params: {} });
  expect(missing.issues.map(({ code }) => code)).toEqual(['param_missing']);
  const more = compileFilter('title = $x', { catalog, collection: 'documents', params: { x: 'a', y: 'b' } });
  expect(more.filter!.issues).toEqual([{ name: 'y', message: 'the filter names no `$y`' }]);
});

test('few are kept, the latest, and of long ones fewer', () => {
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

test('names of params that no filter names push out nothing', () => {
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
