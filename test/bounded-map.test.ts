/** What is remembered for long is what is used. */
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
  ['keeps what fits', 4, 'ABCD', 'abcd'],
  ['drops the first where none was used', 4, 'ABCDE', 'bcde'],
  ['keeps what is used once it is half full', 4, 'ABCaDE', 'acde'],
  ['keeps what is used when it is full', 4, 'ABCDaE', 'acde'],
  ['keeps what is set again', 4, 'ABCDAE', 'acde'],
  ['needs no order before', 4, 'ABaaCDE', 'bcde'],
  ['drops what was used least recently', 4, 'ABCDabcdaE', 'acde'],
  ['may hold one', 1, 'AaB', 'b'],
])('%s', (_, max, uses, keys) => {
  expect([...keysAfter(max, uses)].sort().join('')).toBe(keys);
});

test('gives what it drops, and nothing for what is there already', () => {
  const map = new BoundedMap<string, number>(2);
  expect([map.set('a', 1), map.set('b', 2), map.set('a', 3), map.set('c', 4)]).toEqual([
    undefined,
    undefined,
    undefined,
    2,
  ]);
  expect([map.get('a'), map.get('b'), map.size, map.delete('a'), map.size]).toEqual([3, undefined, 2, true, 1]);
});
