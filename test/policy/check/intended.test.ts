/** Marks (`intended: …`) in the text of a policy: the warnings that each placement silences. */
import { describe, expect, it } from 'vitest';
import { withComments } from '../../../grammar/comments.ts';
import { parse } from '../../../grammar/parser.ts';
import { print } from '../../../grammar/printer.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import { SAMPLE } from '../sample-catalog.ts';

const codesOf = (text: string): readonly string[] =>
  examine(text, { catalog: SAMPLE, collection: 'documents', action: 'update' }).issues.map(({ code }) => code);

describe('marks of intention', () => {
  it.each([
    ['before the whole rule', '/* intended: open to all */ @next.owner = @request.auth.id'],
    [
      'before the first of several clauses',
      '/* intended: open to all */ @next.owner = @request.auth.id and @next.pinned',
    ],
    ['before a clause', '@record.owner = @request.auth.id and /* intended: not yet rated */ @record.score != 5'],
    ['behind a clause', '@record.owner = @request.auth.id and @record.score != 5 /* intended: not yet rated */'],
    [
      'behind a clause that is not the last',
      '@record.score != 5 /* intended: x */ and @record.owner = @request.auth.id',
    ],
    ['inside a clause', '@record.owner = @request.auth.id and @record.score != /* intended: not yet rated */ 5'],
    ['before a negation', '@record.owner = @request.auth.id and /* intended: x */ not (@record.score = 5)'],
    ['inside a negation', '@record.owner = @request.auth.id and not (/* intended: x */ @record.score = 5)'],
    [
      'before parentheses',
      '@record.owner = @request.auth.id and /* intended: x */ (@record.score != 5 or @record.rating != 1)',
    ],
    [
      'inside a quantifier',
      'any(@record.team.memberships as m, m.user = @request.auth.id and /* intended: x */ m.note != "x")',
    ],
    ['before a quantifier', '/* intended: a peer */ any(@record.team.memberships as m, m.user != @request.auth.id)'],
    [
      'before a condition of a count',
      '@record.owner = @request.auth.id and count(@record.tags as t, /* intended: x */ @record.pinned) > 1',
    ],
    ['of several lines', '/* intended:\n open\n to all */ @next.owner = @request.auth.id'],
  ])('a mark silences the warning of its condition, placed %s', (_, text) => {
    expect(codesOf(text.replaceAll(/\/\*[\s\S]*?\*\//g, ''))).not.toEqual([]);
    expect(codesOf(text)).toEqual([]);
  });

  it('a mark leaves the warnings of other conditions', () => {
    const text = '@record.owner = @request.auth.id and /* intended: x */ @record.score != 5 and @record.rating != 1';
    expect(codesOf(text)).toEqual(['negation_of_nullable']);
    const whole = '/* intended: x */ @next.owner = @request.auth.id and @record.score != 5';
    expect(codesOf(whole)).toEqual(['intended_unneeded', 'negation_of_nullable']);
  });

  it.each([
    ['/* intended: x */ @record.owner = @request.auth.id', ['intended_unneeded']],
    ['@record.owner = @request.auth.id and /* intended: x */ @record.pinned', ['intended_unneeded']],
    ['/* intended */ @next.owner = @request.auth.id', ['intended_unneeded', 'next_alone']],
    ['/* intended: */ @next.owner = @request.auth.id', ['intended_unneeded', 'next_alone']],
    ['/* unintended: x */ @next.owner = @request.auth.id', ['next_alone']],
    ['/* intended for agents */ @next.owner = @request.auth.id', ['next_alone']],
    ['@record.title = "/* intended: x */" and @record.owner = @request.auth.id', []],
  ])('the checker reports a mark that silences nothing: %s', (text, codes) => {
    expect(codesOf(text)).toEqual(codes);
  });

  it('a mark silences no error', () => {
    expect(codesOf('/* intended: x */ @record.ownr = @request.auth.id')).toEqual(['name_unknown']);
  });

  it('a mark stays in its place in canonical text', () => {
    const text = '/* intended: x */@next.owner=@request.auth.id&&(/* intended: y */@record.score!=5)';
    expect(withComments(text, print(parse(text).expr!))).toBeUndefined();
    const flat = '/* intended: x */@next.owner=@request.auth.id&&/* intended: y */@record.score!=5';
    const canonical = withComments(flat, print(parse(flat).expr!));
    expect(canonical).toBe('/* intended: x */ @next.owner = @request.auth.id and /* intended: y */ @record.score != 5');
    expect(codesOf(canonical!)).toEqual(codesOf(flat));
  });
});
