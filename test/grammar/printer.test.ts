import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parse } from '../../grammar/parser.ts';
import { print } from '../../grammar/printer.ts';
import { trees, withoutSpans } from './trees.ts';

it('a printed tree reads back as the same tree', () => {
  fc.assert(
    fc.property(trees, (tree) => {
      const text = print(tree);
      const { expr, issues } = parse(text);
      expect(issues).toEqual([]);
      expect(withoutSpans(expr)).toEqual(withoutSpans(tree));
      expect(print(expr!)).toBe(text);
    }),
    { seed: 20260101, numRuns: 2000 },
  );
});

it.each([
  ["  a.b='x'&&!( c.d==1 || e.f )", undefined],
  ["a.b='it\\'s \"so\"'", 'a.b = "it\'s \\"so\\""'],
  ['((a.b))', 'a.b'],
  ['(a.x and b.x) and c.x', '(a.x and b.x) and c.x'],
  ['a.x or b.x and c.x', 'a.x or (b.x and c.x)'],
  ['not(not a.x)', 'not not a.x'],
  ['!(a.x||b.x)&&c.x', 'not (a.x or b.x) and c.x'],
  ['a.x not /* here */ in[1,\n2]', 'a.x not in [1, 2]'],
  ['@now-24h<a.x', '@now - 24h < a.x'],
  ['any( a.xs as x , x . y)', undefined],
])('the spellings of %j print the same', (text, printed) => {
  const { expr } = parse(text);
  expect(expr && print(expr)).toBe(printed);
});
