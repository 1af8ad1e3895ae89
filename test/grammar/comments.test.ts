import { describe, expect, it } from 'vitest';
import { withComments } from '../../grammar/comments.ts';
import { parse } from '../../grammar/parser.ts';
import { print } from '../../grammar/printer.ts';

const canonicalOf = (written: string): string | undefined => withComments(written, print(parse(written).expr!));

describe('comments in canonical text', () => {
  it.each([
    ['/* mine */@record.a=1', '/* mine */ @record.a = 1'],
    ['@record.a=1/* the end */', '@record.a = 1 /* the end */'],
    [
      '@record.a /*one*//*two*/ = /* three */ 1 && @record.b',
      '@record.a /*one*/ /*two*/ = /* three */ 1 and @record.b',
    ],
    [
      "(/* a */@record.a='/* no comment */'||@record.b/* b */)&&@record.c",
      '(/* a */ @record.a = "/* no comment */" or @record.b /* b */) and @record.c',
    ],
    ['@record.a in [/* x */"x",/* y */ "y"/* z */]', '@record.a in [/* x */ "x", /* y */ "y" /* z */]'],
    ['any(@record.t as t,/* me */t.u=@request.auth.id)', 'any(@record.t as t, /* me */ t.u = @request.auth.id)'],
    ['@record.a=1', '@record.a = 1'],
  ])('comments stay in their place: %s', (written, expected) => {
    expect(canonicalOf(written)).toBe(expected);
    expect(canonicalOf(expected)).toBe(expected);
    expect(print(parse(expected).expr!)).toBe(print(parse(written).expr!));
  });

  it.each([
    ['within an operator', '@record.a is /* really */ not null'],
    ['of several lines', '@record.a = 1 /* one\ntwo */'],
    ['beside parentheses that go', '(@record.a = 1) /* a */ and @record.b'],
  ])('comments leave the text alone %s', (_, written) => {
    expect(canonicalOf(written)).toBeUndefined();
  });
});
