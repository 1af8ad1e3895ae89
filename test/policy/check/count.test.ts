import { describe, expect, it } from 'vitest';
import { parse } from '../../../grammar/parser.ts';
import { print } from '../../../grammar/printer.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import { compilePolicy } from '../../../src/policy/compile.ts';
import { SAMPLE as catalog } from '../sample-catalog.ts';

const place = { catalog, collection: 'documents', action: 'list' } as const;
const REQUEST = { auth: { id: null, roles: [] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
const sqlOf = (text: string): string => compilePolicy(text, place).specialise(REQUEST).where('d').text;
const found = (text: string) =>
  examine(text, place).issues.map(({ code, span }) => [code, text.slice(span.start, span.end)]);

describe('count', () => {
  it.each<[string, string, string]>([
    [
      'count(@record.tags) = count(@record.team.memberships)',
      'count_compared',
      'count(@record.tags) = count(@record.team.memberships)',
    ],
    ['count(@record.tags) is null', 'null_of_count', 'count(@record.tags)'],
    ['count(@record.tags)', 'condition_expected', 'count(@record.tags)'],
    ['count(@record.tags) = @record.rating', 'type_mismatch', '@record.rating'],
    ['count(@record.tags) = "2"', 'type_mismatch', '"2"'],
    ['count(@record.tags) contains 2', 'type_mismatch', 'count(@record.tags)'],
    ['2 in count(@record.tags)', 'list_expected', 'count(@record.tags)'],
    ['count(@record.title) = 1', 'to_many_expected', '@record.title'],
    ['count(@record.tags as t, t.lable = "x") = 1', 'name_unknown', 'lable'],
    ['any(@record.tags as t, count(@record.tags as t, true) = 1)', 'variable_shadowed', 't'],
  ])('the checker reports %s', (text, code, marked) => {
    expect(found(text)).toEqual([[code, marked]]);
  });

  it('`count` is a word only before a parenthesis', () => {
    expect(found('any(@record.tags as counts, counts.label = "x")')).toEqual([]);
    const text = 'count ( /* of */ @record.tags as t , t.label="x" )>=2';
    expect(print(parse(text).expr!)).toBe('count(@record.tags as t, t.label = "x") >= 2');
  });

  it('a count of one or more, or of none, becomes a semi-join', () => {
    for (const text of ['count(@record.tags) >= 1', 'count(@record.tags) > 0', '0 != count(@record.tags)'])
      expect(sqlOf(text)).toBe(sqlOf('any(@record.tags as t, true)'));
    for (const text of ['count(@record.tags) = 0', 'count(@record.tags) < 1', 'not (count(@record.tags) >= 0.5)'])
      expect(sqlOf(text)).toBe(sqlOf('none(@record.tags as t, true)'));
  });

  it('SQL counts no further than the literal needs', () => {
    expect(sqlOf('count(@record.tags) >= 3')).toContain('LIMIT 4::int8');
    expect(sqlOf('count(@record.tags) < @record.score')).not.toContain('LIMIT');
  });
});
