/** Used entries stay in a full map. */
import { expect, test } from 'vitest';
import { BoundedMap } from '../src/bounded-map.ts';

/** The keys that are there after these uses: a capital sets, another letter gets. */
function keysAfter(max: number, uses: string): string {
  const map = new BoundedMap<string, true>(max);
  for (const use of uses) {
    const key = use.toLowerCase();
    if (use === key) map.get(key);
    else map.set(key, true);
  }
  return [...map.entries()].map(([key]) => key).join('');
}

test.each([
  ['a map keeps the entries that fit', 4, 'ABCD', 'abcd'],
  ['a full map drops the first if none was used', 4, 'ABCDE', 'bcde'],
  ['a map keeps an entry used after it was half full', 4, 'ABCaDE', 'acde'],
  ['a map keeps an entry used when it is full', 4, 'ABCDaE', 'acde'],
  ['a map keeps an entry that is set again', 4, 'ABCDAE', 'acde'],
  ['a map ignores uses before it was half full', 4, 'ABaaCDE', 'bcde'],
  ['a map ignores that an entry is set again before it is half full', 4, 'ABACDE', 'bcde'],
  ['a map drops the least recently used entry', 4, 'ABCDabcdaE', 'acde'],
  ['a map may hold one entry', 1, 'AaB', 'b'],
])('%s', (_, max, uses, keys) => {
  expect([...keysAfter(max, uses)].sort().join('')).toBe(keys);
});

test('a bounded map returns the entry that it drops', () => {
  const map = new BoundedMap<string, number>(2);
  expect([map.set('a', 1), map.set('b', 2), map.set('a', 3), map.set('c', 4)]).toEqual([
    undefined,
    undefined,
    undefined,
    2,
  ]);
  expect([map.get('a'), map.get('b'), map.size, map.delete('a'), map.size]).toEqual([3, undefined, 2, true, 1]);
});

test('a map with a scale drops as many entries as the new one is heavy', () => {
  const map = new BoundedMap<string, true>(6, ({ length }) => length);
  for (const key of ['a', 'bb', 'ccc', 'dddd']) map.set(key, true);
  expect([...map.entries()].map(([key]) => key)).toEqual(['dddd']);
  map.set('ee', true);
  map.delete('dddd');
  map.set('ffff', true);
  expect([...map.entries()].map(([key]) => key)).toEqual(['ee', 'ffff']);
});
