/** Lists within lists: a decision in memory would compare each element with each. */
import { expect, test } from 'vitest';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { nestsLists } from '../../../src/policy/filters/nested-lists.ts';
import { schemaOf } from '../../support/store-world.ts';

const catalog = schemaOf(`
collections:
  notes:
    fields: { labels: { type: list, of: string } }
    relations: { parent: { kind: belongs_to, collection: notes }, children: { kind: has_many, collection: notes, via: parent } }
    access: { view: true }
`);

test.each([
  ['any(labels as a, a = "x") and any(labels as b, b = "y")', false],
  ['any(children as c, any(c.labels as l, l = "x"))', false],
  ['any(labels as a, any(labels as b, a > b))', true],
  ['any(children as c, any(labels as a, none(c.labels as b, a = b)))', true],
  ['count(labels as a, count(labels as b, a > b) > 1) > 2', true],
  ['not (labels contains "x" or any(labels as a, labels contains a))', false],
])('the filter %s has lists within lists: %s', (text, expected) => {
  const { filter, issues } = compileFilter(text, { catalog, collection: 'notes', params: {} });
  expect(issues).toEqual([]);
  expect(nestsLists(filter!.checked)).toBe(expected);
});
