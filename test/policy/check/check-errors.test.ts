/** Every error of an author: its code, the text that it underlines, and the policy with its fix, which must compile. */
import { describe, expect, it } from 'vitest';
import { underline } from '../../../grammar/policy-error.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import type { Action } from '../../../src/policy/types.ts';
import { SAMPLE } from '../sample-catalog.ts';

type Expected = readonly [code: string, underlined: string, fixed?: string];
const context = (action: Action) => ({ catalog: SAMPLE, collection: 'documents', action });

function errorsOf(text: string, action: Action = 'update'): Expected[] {
  return examine(text, context(action)).issues.map(({ code, span, fix }) => {
    const underlined = text.slice(span.start, span.end);
    if (fix === undefined) return [code, underlined];
    return [code, underlined, text.slice(0, fix.span.start) + fix.replacement + text.slice(fix.span.end)];
  });
}

// prettier-ignore
const CASES: readonly (readonly [policy: string, ...expected: Expected[]])[] = [
  ['@record.titel = "x"', ['name_unknown', 'titel', '@record.title = "x"']],
  ['@record.owner_idd = @request.auth.id', ['name_unknown', 'owner_idd', '@record.owner_id = @request.auth.id']],
  ['@record.status = published', ['text_unquoted', 'published', '@record.status = "published"']],
  ['status = "draft"', ['variable_unknown', 'status', '@record.status = "draft"']],
  ['record.status = "draft"', ['variable_unknown', 'record', '@record.status = "draft"']],
  ['@record.team = null', ['null_compared', 'null', '@record.team is null']],
  ['null != @record.team', ['null_compared', 'null', '@record.team is not null']],
  ['@record.tags = "x"', ['to_many_compared', '@record.tags']],
  [
    '@record.team.memberships.user = @request.auth.id',
    ['to_many_compared', '@record.team.memberships', 'any(@record.team.memberships as x, x.user = @request.auth.id)'],
  ],
  ['@record.owner in @record.tags', ['to_many_compared', '@record.tags']],
  ['@request.auth.roles contains "admn"', ['role_unknown', '"admn"', '@request.auth.roles contains "admin"']],
  ['"zzz" in @request.auth.roles', ['role_unknown', '"zzz"']],
  ['@request.auth.roles = "admin"', ['list_compared', '@request.auth.roles', '"admin" in @request.auth.roles']],
  ['@record.owner = @record.team', ['type_mismatch', '@record.team']],
  ['@record.owner = "nope"', ['identifier_malformed', '"nope"']],
  ['@request.auth.id != ""', ['identifier_malformed', '""', '@request.auth.id is not null']],
  ['@record.team = ""', ['identifier_malformed', '""', '@record.team is null']],
  ['@record.title contains @record.owner', ['type_mismatch', '@record.owner']],
  ['@record.owner starts with "x"', ['type_mismatch', '@record.owner']],
  ['@request.auth.roles contains @record.owner', ['type_mismatch', '@record.owner']],
  ['@record.score = "5"', ['type_mismatch', '"5"', '@record.score = 5']],
  ['@record.title = 5', ['type_mismatch', '5', '@record.title = "5"']],
  ['@record.pinned = "true"', ['type_mismatch', '"true"', '@record.pinned = true']],
  ['@record.due_at < "2024-01-01"', ['datetime_malformed', '"2024-01-01"', '@record.due_at < "2024-01-01T00:00:00Z"']],
  ['@record.due_at < 5', ['type_mismatch', '5']],
  ['@record.owner < @request.auth.id', ['type_unordered', '<']],
  ['@record.pinned > false', ['type_unordered', '>']],
  ['@record.status in "draft"', ['list_expected', '"draft"', '@record.status in ["draft"]']],
  ['@record.status in @record.title', ['list_expected', '@record.title', '@record.title contains @record.status']],
  ['@record.status = ["draft"]', ['list_compared', '["draft"]', '@record.status in ["draft"]']],
  ['@record.score contains 1', ['type_mismatch', '@record.score']],
  ['not @record.title', ['condition_expected', '@record.title', 'not @record.title is not null']],
  ['@record.tags', ['condition_expected', '@record.tags', 'any(@record.tags as x, true)']],
  ['"x"', ['condition_expected', '"x"']],
  ['any(@record.owner as x, true)', ['to_many_expected', '@record.owner']],
  ['any(@record.team.memberships.user as x, true)', ['to_many_expected', '.user']],
  ['any(@record.tags as x, any(@record.tags as x, true))', ['variable_shadowed', 'x']],
  ['any(@record.tags as t, u.label = "x")', ['variable_unknown', 'u', 'any(@record.tags as t, t.label = "x")']],
  ['any(@record.tags as t, t.lable = "x")', ['name_unknown', 'lable', 'any(@record.tags as t, t.label = "x")']],
  ['@record.tags is null', ['null_of_list', '@record.tags', 'none(@record.tags as x, true)']],
  ['@request.auth.roles is null', ['null_of_list', '@request.auth.roles']],
  ['"x" is null', ['null_of_literal', '"x"']],
  ['@request.auth.hom = @record.team', ['name_unknown', 'hom', '@request.auth.home = @record.team']],
  ['@request.auth.home.name = "x"', ['path_not_walked', '.name']],
  ['@request.data.titel = "x"', ['name_unknown', 'titel', '@request.data.title = "x"']],
  ['@record.title.length > 5', ['path_not_walked', '.length']],
  [
    '@record.score in [1, "2", null]',
    ['type_mismatch', '"2"', '@record.score in [1, 2, null]'],
    ['null_compared', 'null'],
  ],
  [
    '@next.title == "x" and @record.titl = "y" AND @record.score = null',
    ['operator_foreign', '==', '@next.title = "x" and @record.titl = "y" AND @record.score = null'],
    ['name_unknown', 'titl', '@next.title == "x" and @record.title = "y" AND @record.score = null'],
    ['word_case', 'AND', '@next.title == "x" and @record.titl = "y" and @record.score = null'],
    ['null_compared', 'null', '@next.title == "x" and @record.titl = "y" AND @record.score is null'],
  ],
  ['@user.id = @record.owner', ['path_unknown', '@user', '@request.auth.id = @record.owner']],
  ['@requets.auth.id = @record.owner', ['path_unknown', '@requets', '@request.auth.id = @record.owner']],
  ['@record = 1', ['path_incomplete', '@record']],
  ['@request.headers.x = "1"', ['path_unknown', '@request.headers']],
  ['any(@record.tags as t, label = "x")', ['variable_unknown', 'label', 'any(@record.tags as t, t.label = "x")']],
  ['@record.x = 1', ['name_unknown', 'x']],
  ['exists(@record.tags as t, true)', ['function_unknown', 'exists', 'any(@record.tags as t, true)']],
  ['@record.due_at > now()', ['function_unknown', 'now()', '@record.due_at > @now']],
  ['@record.owner = auth.uid()', ['function_unknown', 'auth.uid()', '@record.owner = @request.auth.id']],
  ['@request.query = "x"', ['path_incomplete', '@request.query']],
  ['@record.team.lead.home.lead.home.lead.id = "x"', ['path_too_long', '@record.team.lead.home.lead.home.lead.id']],
  ['@record.title = "x" AND @record.pinned', ['word_case', 'AND', '@record.title = "x" and @record.pinned']],
  ['@record.title == "x"', ['operator_foreign', '==', '@record.title = "x"']],
  ['@record.title <> "x"', ['operator_foreign', '<>', '@record.title != "x"']],
  ['@record.pinned & @record.pinned', ['operator_foreign', '&', '@record.pinned and @record.pinned']],
  ['@record.title LIKE "x%"', ['operator_pattern', 'LIKE', '@record.title starts with "x"']],
  ['@record.title like "%x"', ['operator_pattern', 'like', '@record.title ends with "x"']],
  ['@record.title ilike "a_b"', ['operator_pattern', 'ilike']],
  ['1 < @record.score < 5', ['comparison_chained', '<', '1 < @record.score and @record.score < 5']],
  ['@record.title not contains "x"', ['not_within', 'not', 'not (@record.title contains "x")']],
  ['@record.score between 1 and 5', ['operator_foreign', 'between']],
  ['@record.title contians "x"', ['operator_unknown', 'contians', '@record.title contains "x"']],
  ['@record.team is not "x"', ['operator_foreign', 'is not']],
  ['@record.title = “x”', ['curly_quotes', '“x”', '@record.title = "x"']],
  ['@record.title = "a\\qb"', ['escape_unknown', '\\q', '@record.title = "a\\\\qb"']],
  ['@record.title = "a\tb"', ['control_character', '\t', '@record.title = "a\\tb"']],
  ['@record.title = "\\u0000"', ['text_unstorable', '"\\u0000"']],
  ['@record.score = 01', ['number_malformed', '01', '@record.score = 1']],
  ['@record.score = 1_000', ['number_malformed', '1_000', '@record.score = 1000']],
  ['@record.score > 24h', ['duration_misplaced', '24h']],
  ['@record.due_at > @now - 24', ['duration_malformed', '24']],
  ['@record.due_at > @now - 7days', ['duration_malformed', '7days', '@record.due_at > @now - 7d']],
  ['@record.due_at > @now - 3y', ['duration_malformed', '3y']],
  ['@record.due_at > @now - 999999999w', ['duration_too_long', '999999999w']],
  ['@record.pinned // always', ['line_comment', '// always', '@record.pinned /* always */']],
  ['@record.pinned /* always', ['comment_unclosed', '/* always']],
  ['@record.title = "x', ['text_unclosed', '"x']],
  ['@record.pinned;', ['character_unknown', ';', '@record.pinned']],
  ['(@record.pinned', ['parenthesis_unclosed', '(', '(@record.pinned)']],
  ['@record.pinned)', ['parenthesis_unopened', ')', '@record.pinned']],
  ['(@record.title) = "x"', ['operand_in_parentheses', '(@record.title)']],
  ['lower(@record.title) = "x"', ['function_unknown', 'lower']],
  ['anyy(@record.tags as t, true)', ['function_unknown', 'anyy', 'any(@record.tags as t, true)']],
  ['@record.pinned @record.pinned', ['operator_expected', '@record.pinned']],
  ['@record.pinned and', ['operand_expected', 'and']],
  ['@record.title =', ['operand_expected', '=']],
  ['any(@record.tags t, true)', ['quantifier_malformed', 't']],
  ['any(@record.tags as in, true)', ['word_reserved', 'in']],
  [
    '@record.status in ["draft", published]',
    ['text_unquoted', 'published', '@record.status in ["draft", "published"]'],
  ],
  ['@record.status in ["draft",]', ['list_malformed', ',', '@record.status in ["draft"]']],
  ['@record.status in ["draft"', ['list_unclosed', '', '@record.status in ["draft"]']],
  ['@record.score + 1 = 2', ['no_arithmetic', '+']],
  ['@record. = 1', ['name_expected', '.']],
];

describe('the errors of one policy', () => {
  it.each(CASES.map(([policy, ...expected]) => ({ policy, expected })))('$policy', ({ policy, expected }) => {
    expect(errorsOf(policy)).toEqual(expected);
    const [only] = expected;
    if (expected.length === 1 && only?.[2] !== undefined) {
      expect(examine(only[2], context('update')).checked).toBeDefined();
    }
  });

  /** Errors at the end of the text: with more text after it, the message differs. */
  const ENDLESS = new Set([
    'text_unclosed',
    'comment_unclosed',
    'line_comment',
    'list_unclosed',
    'parenthesis_unclosed',
  ]);
  const ALONE = CASES.filter(([, first]) => !ENDLESS.has(first![0]));

  it.each(ALONE.map(([policy, ...expected]) => ({ policy, expected })))(
    'no error hides another: $policy',
    ({ policy, expected }) => {
      const codes = expected.map(([code]) => code);
      const found = errorsOf(`@record.scor = 1 or ${policy} or @record.titl = ""`).map(([code]) => code);
      expect(found).toEqual(['name_unknown', ...codes, 'name_unknown']);
    },
  );

  it.each<[string, ...string[]]>([
    [
      '@record.title = = "a" and @record.score = "x" or @record.titl = ""',
      'operand_expected',
      'type_mismatch',
      'name_unknown',
    ],
    [
      '@record.title = and (@record.score > and @record.pinned = 1)',
      'operand_expected',
      'operand_expected',
      'type_mismatch',
    ],
    ['(@record.title = "a" and @record.scor = 1', 'parenthesis_unclosed', 'name_unknown'],
    ['((@record.scor = 1 and @record.title =', 'name_unknown', 'operand_expected'],
    ['@record.title = "a") and @record.scor = 1', 'parenthesis_unopened', 'name_unknown'],
    ['any(@record.tags t, t.labl = "x") and @record.scor = 1', 'quantifier_malformed', 'name_unknown'],
    [
      'any(@record.tags as t, t.labl = "x" and t.label = ) and @record.scor = 1',
      'name_unknown',
      'operand_expected',
      'name_unknown',
    ],
    ['@record.status in ["a" and @record.scor = 1', 'list_malformed', 'name_unknown'],
  ])('the checker reports errors together: %s', (policy, ...codes) => {
    expect(errorsOf(policy).map(([code]) => code)).toEqual(codes);
  });

  it('error codes never change', () => {
    const met = new Set(CASES.flatMap(([, ...expected]) => expected.map(([code]) => code)));
    expect([...met].sort()).toMatchInlineSnapshot(`
      [
        "character_unknown",
        "comment_unclosed",
        "comparison_chained",
        "condition_expected",
        "control_character",
        "curly_quotes",
        "datetime_malformed",
        "duration_malformed",
        "duration_misplaced",
        "duration_too_long",
        "escape_unknown",
        "function_unknown",
        "identifier_malformed",
        "line_comment",
        "list_compared",
        "list_expected",
        "list_malformed",
        "list_unclosed",
        "name_expected",
        "name_unknown",
        "no_arithmetic",
        "not_within",
        "null_compared",
        "null_of_list",
        "null_of_literal",
        "number_malformed",
        "operand_expected",
        "operand_in_parentheses",
        "operator_expected",
        "operator_foreign",
        "operator_pattern",
        "operator_unknown",
        "parenthesis_unclosed",
        "parenthesis_unopened",
        "path_incomplete",
        "path_not_walked",
        "path_too_long",
        "path_unknown",
        "quantifier_malformed",
        "role_unknown",
        "text_unclosed",
        "text_unquoted",
        "text_unstorable",
        "to_many_compared",
        "to_many_expected",
        "type_mismatch",
        "type_unordered",
        "variable_shadowed",
        "variable_unknown",
        "word_case",
        "word_reserved",
      ]
    `);
  });
});

describe('names that an action lacks', () => {
  it.each<[Action, string, Expected]>([
    ['list', '@next.title = "x"', ['next_misplaced', '@next', '@record.title = "x"']],
    ['delete', '@next.title = "x"', ['next_misplaced', '@next', '@record.title = "x"']],
    ['read', '@request.data.title = "x"', ['data_misplaced', '@request.data.title']],
    ['delete', '@request.data.title = "x"', ['data_misplaced', '@request.data.title']],
  ])('%s: %s', (action, policy, expected) => {
    expect(errorsOf(policy, action)).toEqual([expected]);
  });

  it('a create reads `@next` as the record', () => {
    const spanless = (text: string) =>
      JSON.parse(
        JSON.stringify(examine(text, context('create')).checked, (key, value: unknown) =>
          key === 'span' ? undefined : value,
        ),
      );
    expect(spanless('@next.owner = @request.auth.id')).toEqual(spanless('@record.owner = @request.auth.id'));
  });
});

it('an error is in lower case, suggests the probable name and underlines the place', () => {
  const text = '@record.pinned\n  and @record.titel = "x"';
  const [issue] = examine(text, context('list')).issues;
  expect(underline(text, issue!)).toBe(
    [
      'error[name_unknown]: `documents` has no `titel`; did you mean `title`?',
      '    and @record.titel = "x"',
      '                ^^^^^',
    ].join('\n'),
  );
});
