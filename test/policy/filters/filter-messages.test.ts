/** Errors of filters speak the language of filters, in which names are members of the record: no `@record`, no `@request`. */
import { expect, it } from 'vitest';
import { compileFilter } from '../../../src/policy/filters/filter.ts';
import { SAMPLE as catalog } from '../sample-catalog.ts';

const messagesOf = (filter: string): readonly string[] =>
  compileFilter(filter, { catalog, collection: 'documents', params: {} }).issues.map(({ message }) => message);

it.each([
  ['any(tags)', 'found `)`, expected `as` and a name; a quantifier is `any(members as m, m.user = @me)`'],
  [
    'any(ancestors(team parent) as t, true)',
    'found `parent`, expected `by` and a belongs_to; write `ancestors(folder by parent)`',
  ],
  [
    'any(ancestors(title by parent) as t, true)',
    '`ancestors` begins at one record, found a value; expected a path such as `parent`',
  ],
  [
    'any(ancestors(id by parent) as t, true)',
    '`ancestors` begins at a related record, not at the record itself; expected `parent`',
  ],
  ['owner = auth.uid()', '`auth.uid()` is not a function of the language; expected `@me`'],
  ['created_at > now()', '`now()` is not a function of the language; expected `@now`'],
  [
    'lower(title) = "a"',
    '`lower(…)` is not a function of the language; expected `any`, `all`, `none`, `count`, `ancestors` or `within`',
  ],
])('%s', (filter, message) => {
  expect(messagesOf(filter)).toContain(message);
});

it.each([
  'any(tags',
  'any(tags as t',
  'any(ancestors(team',
  'exists(tags)',
  'auth.email() = "a"',
  'tags = "a"',
  'team is',
  'titel = "a"',
  'score = "5"',
  'team.memberships.user = @me',
])('the error of %s has no word of policies', (filter) => {
  expect(messagesOf(filter)).not.toEqual([]);
  for (const message of messagesOf(filter)) expect(message).not.toMatch(/@record|@request|@next|named condition/);
});
