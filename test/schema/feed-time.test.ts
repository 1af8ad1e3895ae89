/** Rules for lists of collections with a feed that depend on the time. */
import { expect, it } from 'vitest';
import { parseSchema } from '../../src/schema/load.ts';

const warningsOf = (changes: string, access: string): readonly string[] => {
  const { schema, issues } = parseSchema(`
collections:
  docs:
    changes: ${changes}
    fields: { due: datetime, day: date, public: bool }
    relations: { parent: { kind: belongs_to, collection: docs } }
    access: { ${access} }
`);
  if (schema === undefined) throw new Error(JSON.stringify(issues));
  return issues.filter(({ code }) => code === 'feed_time').map(({ path }) => path);
};

it.each([
  ['@record.due > @now', 1],
  ['@record.public or @record.day < @today + 7d', 1],
  ['any(ancestors(@record.parent by parent) as d, d.due < @now - 1h)', 1],
  ['@now.hour >= 8', 1],
  ['@record.public and @record.due > "2026-01-01T00:00:00Z"', 0],
])('the checker counts the list rules of a feed that name the time: %s', (rule, count) => {
  expect(warningsOf('true', `list: '${rule}'`)).toHaveLength(count);
  expect(warningsOf('{ retention: 1h }', `view: '${rule}'`)).toHaveLength(count);
  expect(warningsOf('false', `list: '${rule}'`)).toHaveLength(0);
  expect(warningsOf('true', `read: '${rule}'`)).toHaveLength(0);
});
