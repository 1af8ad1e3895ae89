/** The search of names, and the collections of which a text may be an id. */
import { expect, test } from 'vitest';

/** Its types are those of a page. */
const { collectionsWithId, hasText } = await import(
  new URL('../../src/studio/app/palette-names.ts', import.meta.url).href
);

const UUID = '0198c0de-0000-7000-8000-00000000000A';
const collections = [
  { name: 'notes', key: { type: 'uuid', made_by: 'service' } },
  { name: 'orders', key: { type: 'int', made_by: 'database' } },
  { name: 'customers', key: { type: 'string', made_by: 'caller' } },
  { name: 'files', key: { type: 'uuid', made_by: 'service' } },
];

test.each([
  [UUID, ['notes', 'customers', 'files']],
  ['12', ['orders', 'customers']],
  ['-3', ['orders', 'customers']],
  ['1.5', ['customers']],
  ['8812~3', ['customers']],
  ['', []],
])('the text %j may be an id of the collections with a key of its form', (text, names) => {
  expect(collectionsWithId(collections, text, undefined)).toEqual(names);
});

test('the open collection comes first', () => {
  expect(collectionsWithId(collections, UUID, 'files')).toEqual(['files', 'notes', 'customers']);
  expect(collectionsWithId(collections, '12', 'notes')).toEqual(['orders', 'customers']);
});

test('a name is found by a part of it in any case', () => {
  const names = ['notes', 'Notes2', 'a_Note', 'orders'];
  expect(names.filter((name) => hasText(name, ' NOTE'))).toEqual(['notes', 'Notes2', 'a_Note']);
  expect(names.filter((name) => hasText(name, 'Notes2'))).toEqual(['Notes2']);
  expect(names.filter((name) => hasText(name, ''))).toEqual(names);
});
