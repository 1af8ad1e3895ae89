import { describe, expect, it } from 'vitest';
import { parse } from '../../grammar/parser.ts';

const codes = (text: string): string[] => parse(text).issues.map((issue) => issue.code);
const chain = (n: number) => Array.from({ length: n }, () => '@record.a').join(' or ');
const nested = (open: string, close: string, n: number) => `${open.repeat(n)}@record.a${close.repeat(n)}`;

describe('the limits of a policy', () => {
  it.each<[string, string, string]>([
    ['4,096 bytes', `@record.a${' '.repeat(4087)}`, `@record.a${' '.repeat(4088)}`],
    ['4,096 bytes of UTF-8', `a.b = "${'é'.repeat(2044)}"`, `a.b = "${'é'.repeat(2045)}"`],
    ['64 parentheses', nested('(', ')', 64), nested('(', ')', 65)],
    ['64 nots', nested('not ', '', 64), nested('not ', '', 65)],
    ['64 levels of both', nested('not (', ')', 32), `not ${nested('not (', ')', 32)}`],
    ['256 comparisons', chain(256), chain(257)],
    ['1,000 list elements', `a.b in [${'1,'.repeat(999)}1]`, `a.b in [${'1,'.repeat(1000)}1]`],
    ['6 names', '@record.a.b.c.d.e.f', '@record.a.b.c.d.e.f.g'],
    ['6 names of a variable', 'm.a.b.c.d.e.f', 'm.a.b.c.d.e.f.g'],
  ])('the limits allow %s and no more', (_, most, more) => {
    expect(codes(most)).toEqual([]);
    expect(codes(more)).toHaveLength(1);
    expect(codes(more)[0]).toMatch(/^(policy_too_long|too_deep|too_many_comparisons|too_many_elements|path_too_long)$/);
  });

  it('finished nots do not add up', () => {
    for (const word of [' and ', ' or '])
      expect(codes(Array.from({ length: 100 }, () => 'not (not @record.a)').join(word))).toEqual([]);
    expect(codes(`${'('.repeat(60)}not @record.a${')'.repeat(60)} and ${nested('(', ')', 64)}`)).toEqual([]);
  });

  it.each([
    '('.repeat(65536),
    'not '.repeat(16384),
    ')'.repeat(4096),
    '['.repeat(4096),
    '"'.repeat(4095),
    '/*'.repeat(2048),
    '@'.repeat(4096),
    '😀'.repeat(1024),
  ])('the parser reports an error for %.20s…', (text) => {
    expect(parse(text).expr).toBeUndefined();
    expect(codes(text).length).toBeGreaterThan(0);
    expect(codes(text).length).toBeLessThanOrEqual(32);
  });
});
