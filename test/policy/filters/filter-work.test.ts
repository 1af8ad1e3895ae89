/** Deciding a filter in the process takes steps of a budget, whose number depends on the filter and its rows alone. */
import { describe, expect, it } from 'vitest';
import { clauseOf } from '../../../src/policy/analyse/explanation.ts';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import type { Related, Row } from '../../../src/policy/types.ts';
import type { Visibility } from '../../../src/policy/visibility.ts';
import { TooMuchWork, WorkBudget } from '../../../src/policy/work-budget.ts';
import { raw } from '../../../src/sql.ts';
import { NOTES as catalog } from './notes.ts';

const RULE = { verdict: 'allow', where: () => raw('TRUE'), lookUps: [] } as const;
const EVERYTHING: Visibility = { records: () => RULE, member: () => RULE };
const NOW = '2026-01-01T00:00:00.000000Z';

const ROWS = 10;
const CHILDREN: readonly Row[] = Array.from({ length: ROWS }, (_, i) => ({ id: `${i}`, title: `t${i}`, parent: 'p' }));
const RECORD: Row = {
  id: 'p',
  title: 'x'.repeat(320),
  body: 'x'.repeat(640),
  letter: 'ﷺ'.repeat(100),
  many: JSON.stringify(Array(101).fill(1)),
  labels: `{${Array.from({ length: 20 }, () => '"x"').join(',')}}`,
  meta: JSON.stringify({ color: 'x'.repeat(300) }),
};
const related: Related = { one: () => RECORD, many: (_collection, _relation, id) => (id === 'p' ? CHILDREN : []) };

/** True, false, or undefined: the filter takes more steps. */
function decided(text: string, params: object, steps: number): boolean | undefined {
  const { filter, issues } = compileFilter(text, { catalog, collection: 'notes', params: { ...params } });
  if (filter === undefined) throw new Error(JSON.stringify(issues));
  return within(() => filter.asked({ auth: {}, now: NOW }, EVERYTHING).matches(RECORD, related, new WorkBudget(steps)));
}

function within<T>(decide: () => T): T | undefined {
  try {
    return decide();
  } catch (error) {
    if (error instanceof TooMuchWork) return undefined;
    throw error;
  }
}

const TWO = 'any(children as a, any(a.parent.children as b, a.title < b.title and b.title < a.title))';

describe('the steps of a decision', () => {
  it.each<[filter: string, value: boolean, steps: number]>([
    ['id is not null', true, 1],
    // Each row of a to-many counts, times the parts of the condition.
    ['any(children as c, c.title = "none")', false, ROWS],
    ['any(children as c, c.title = "none" and c.body = "no")', false, ROWS * 3],
    // Rows are counted before the first that decides.
    ['any(children as c, c.title = "t0")', true, ROWS],
    // A title that is null is tested too.
    ['none(children as c, c.title = "t0")', false, ROWS * 3],
    ['all(children as c, c.title = "t0")', false, ROWS * 3],
    ['count(children as c, c.title = "t0") = 1', true, ROWS],
    // The inner condition has three parts: `and` and its comparisons. The outer one has one more.
    [TWO, false, ROWS * 4 + ROWS * ROWS * 3],
    // 32 characters are compared in a step.
    ['title = "none"', false, 10],
    ['title = "none" or title > "none" and title = "no"', false, 30],
    ['title < "none"', false, 10],
    ['body contains "none"', false, 20],
    ['body starts with "none"', false, 20],
    // Two characters are folded or parsed in one, but a character beyond ASCII takes eight, and so does a value within JSON.
    ['body matches "none"', false, 20 + 320],
    ['letter matches "none"', false, 3 + 800],
    ['meta.color = "none"', false, 156 + 8],
    ['meta.color is null', false, 156 + 8],
    ['many.color is null', true, 101 + 8 * 100],
    ['labels contains "none"', false, 40],
    ['any(labels as l, l = "none")', false, 40 + 20],
  ])('%s', (filter, value, steps) => {
    expect(decided(filter, {}, steps)).toBe(value);
    if (steps > 1) expect(decided(filter, {}, steps - 1)).toBeUndefined();
  });

  it('counts the elements of lists of params', () => {
    const params = { ids: Array.from({ length: 800 }, () => 'four') };
    const filter = 'any(children as c, c.title in $ids)';
    const steps = ROWS + ROWS * (800 / 8 + 3200 / 32);
    expect(decided(filter, params, steps)).toBe(false);
    expect(decided(filter, params, steps - 1)).toBeUndefined();
  });
});

describe('the steps of an explanation', () => {
  const explained = (text: string, steps: number) => {
    const { filter } = compileFilter(text, { catalog, collection: 'notes', params: {} });
    const policy = { checked: filter!.checked, text, source: text };
    const request = { auth: {}, query: {}, now: NOW };
    return within(() => clauseOf({ policy, request, record: RECORD, related, work: new WorkBudget(steps) }).value);
  };
  const CLAUSE = 16;

  it.each<[filter: string, value: boolean, steps: number]>([
    ['id is not null', true, CLAUSE],
    ['any(children as c, c.title = "t0")', true, CLAUSE + 1 + ROWS * CLAUSE],
    ['count(children as c, c.title = "t0") = 1', true, CLAUSE + 1 + ROWS * CLAUSE],
    // The explanation shows the values of both sides.
    ['title = "none"', false, CLAUSE + 10],
    ['body matches "none"', false, CLAUSE + 20 + 320],
    ['meta.color = "none"', false, CLAUSE + 164 + 9],
    ['labels contains "none"', false, CLAUSE + 2 + 40],
    ['any(labels as l, l = "none")', false, CLAUSE + 40 + 20 * CLAUSE],
  ])('%s', (filter, value, steps) => {
    expect(explained(filter, steps)).toBe(value);
    expect(explained(filter, steps - 1)).toBeUndefined();
  });
});
