import { describe, expect, it } from 'vitest';
import { compile } from '../../src/policy/compile.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const ME = '11111111-1111-4111-8111-111111111111';
const TAG = '22222222-2222-4222-8222-222222222222';
const REQUEST = {
  auth: { id: ME, email: 'a@example.com', email_verified: true, roles: ['member'], department: 'sales', home: null },
  query: { q: 'ab', top: '\u{10ffff}', empty: '', tag: TAG, ids: ['1', 'x'], n: '5', mode: ['a', 'b'] },
  now: '2026-01-01T00:00:00.000000Z',
};
const residualOf = (text: string) =>
  compile(text, { catalog, collection: 'documents', action: 'list' }).specialise(REQUEST);

/** Policy, condition over documents as `d`, values. */
const PINNED: readonly (readonly [policy: string, text: string, values: readonly unknown[]])[] = [
  [
    '@record.status = "published" or @record.owner = @request.auth.id',
    '("d"."status" = $1::text OR "d"."owner_id" = $2::uuid)',
    ['published', ME],
  ],
  [
    '@record.status = "a" or @record.status = "b" or @record.status in ["b", "c"]',
    '"d"."status" = ANY($1::text[])',
    [['a', 'b', 'c']],
  ],
  ['@record.status != "a" and @record.status not in ["b", "c"]', '"d"."status" <> ALL($1::text[])', [['a', 'b', 'c']]],
  [
    'not (@record.status = "a" or @record.owner = @request.auth.id)',
    '("d"."status" <> $1::text AND "d"."owner_id" <> $2::uuid)',
    ['a', ME],
  ],
  ['@record.pinned', '"d"."pinned"', []],
  ['not @record.pinned', 'NOT "d"."pinned"', []],
  ['@record.pinned != true', 'NOT "d"."pinned"', []],
  ['@record.score >= 1.5', '"d"."score" >= $1::int8', [2]],
  ['@record.score < 1.5', '"d"."score" <= $1::int8', [1]],
  ['not (@record.score = 1.5)', '"d"."score" IS NOT NULL', []],
  ['@record.score != 9007199254740993', '"d"."score" IS NOT NULL', []],
  ['@record.rating > 9007199254740993', '"d"."rating" > $1::float8', [9007199254740992]],
  ['@record.score in [1, 1.5, 2]', '"d"."score" = ANY($1::int8[])', [[1, 2]]],
  ['@record.score < 5 and @record.score < 3', '"d"."score" < $1::int8', [3]],
  ['@record.score < 5 or @record.score >= 5', '"d"."score" IS NOT NULL', []],
  ['@record.rating = @record.score', '"d"."rating" = "d"."score"', []],
  ['@record.score = @request.query.n', '"d"."score" = $1::int8', [5]],
  ['@record.score in @request.query.ids', '"d"."score" = ANY($1::int8[])', [[1]]],
  ['@record.title = @request.query.mode or @record.pinned', '"d"."pinned"', []],
  ['@record.title < @request.query.q', '"d"."title" < $1::text COLLATE "C"', ['ab']],
  ['@record.title contains @request.query.q', 'strpos("d"."title", $1::text) > 0', ['ab']],
  ['not (@record.title contains @request.query.q)', 'strpos("d"."title", $1::text) = 0', ['ab']],
  [
    '@record.title starts with @request.query.q',
    '("d"."title" >= $1::text COLLATE "C" AND "d"."title" < $2::text COLLATE "C" AND starts_with("d"."title", $3::text))',
    ['ab', 'ac', 'ab'],
  ],
  [
    '@record.title starts with @request.query.top',
    '("d"."title" >= $1::text COLLATE "C" AND starts_with("d"."title", $2::text))',
    ['\u{10ffff}', '\u{10ffff}'],
  ],
  [
    '@record.title starts with @request.query.empty',
    '("d"."title" >= $1::text COLLATE "C" AND starts_with("d"."title", $2::text))',
    ['', ''],
  ],
  ['not (@record.title starts with "x")', 'NOT starts_with("d"."title", $1::text)', ['x']],
  ['@record.title ends with "x"', 'right("d"."title", char_length($1::text)) = $2::text', ['x', 'x']],
  ['@request.query.q starts with @record.title', 'starts_with($1::text, "d"."title")', ['ab']],
  ['@record.title = @record.owner', '"d"."title" = "d"."owner_id"::text', []],
  ['@record.title = @request.auth.id', '"d"."title" = $1::text', [ME]],
  ['@record.owner = @request.auth.department', '"d"."owner_id"::text = $1::text', ['sales']],
  ['@record.due_at < @now - 24h', '"d"."due_at" < $1::timestamptz', ['2025-12-31T00:00:00.000000Z']],
  ['@record.due_at is null', '"d"."due_at" IS NULL', []],
  ['@record.team.name is null', '"d"."team_id" IS NULL', []],
  [
    '@record.cover.caption is null',
    'NOT EXISTS (SELECT 1 FROM "covers" AS "d_1" WHERE "d_1"."document_id" = "d"."id" AND "d_1"."caption" IS NOT NULL)',
    [],
  ],
  ['@record.team is not null', '"d"."team_id" IS NOT NULL', []],
  ['@record.team.id = @request.query.tag', '"d"."team_id" = $1::uuid', [TAG]],
  [
    '@record.team.lead = @request.auth.id',
    'EXISTS (SELECT 1 FROM "teams" AS "d_1" WHERE "d_1"."id" = "d"."team_id" AND "d_1"."lead_id" = $1::uuid)',
    [ME],
  ],
  [
    'not (@record.team.lead = @request.auth.id)',
    'EXISTS (SELECT 1 FROM "teams" AS "d_1" WHERE "d_1"."id" = "d"."team_id" AND "d_1"."lead_id" <> $1::uuid)',
    [ME],
  ],
  [
    '@record.team.lead = @request.auth.id and @record.team.name = "x"',
    'EXISTS (SELECT 1 FROM "teams" AS "d_1" WHERE "d_1"."id" = "d"."team_id" AND "d_1"."lead_id" = $1::uuid AND "d_1"."name" = $2::text)',
    [ME, 'x'],
  ],
  [
    '@record.team.lead.email = @request.auth.email or @record.pinned',
    '("d"."pinned" OR "d"."team_id" = ANY(ARRAY(SELECT "d_1"."id" FROM "teams" AS "d_1" WHERE EXISTS (SELECT 1 FROM "users" AS "d_2" WHERE "d_2"."id" = "d_1"."lead_id" AND "d_2"."email" = $1::text))))',
    ['a@example.com'],
  ],
  ['@record.cover.id is null', 'NOT EXISTS (SELECT 1 FROM "covers" AS "d_1" WHERE "d_1"."document_id" = "d"."id")', []],
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])',
    'EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."team_id" = "d"."team_id" AND "d_1"."user_id" = $1::uuid AND "d_1"."role" = ANY($2::text[]))',
    [ME, ['owner', 'editor']],
  ],
  [
    '@record.owner = @request.auth.id or any(@record.team.memberships as m, m.user = @request.auth.id)',
    '("d"."owner_id" = $1::uuid OR "d"."team_id" = ANY(ARRAY(SELECT "d_1"."team_id" FROM "memberships" AS "d_1" WHERE "d_1"."user_id" = $2::uuid)))',
    [ME, ME],
  ],
  [
    '@record.pinned or any(@record.team.memberships as m, m.note != "x")',
    '("d"."pinned" OR EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."team_id" = "d"."team_id" AND "d_1"."note" <> $1::text))',
    ['x'],
  ],
  [
    'all(@record.team.memberships as m, m.note != "x")',
    '("d"."team_id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."team_id" = "d"."team_id" AND ("d_1"."note" = $1::text OR "d_1"."note" IS NULL)))',
    ['x'],
  ],
  [
    'none(@record.team.memberships as m, m.user.email = "x")',
    '("d"."team_id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."team_id" = "d"."team_id" AND EXISTS (SELECT 1 FROM "users" AS "d_2" WHERE "d_2"."id" = "d_1"."user_id" AND "d_2"."email" = $1::text)))',
    ['x'],
  ],
  [
    'not any(@record.team.memberships as m, m.note = "x" and m.role = "owner")',
    '("d"."team_id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."team_id" = "d"."team_id" AND "d_1"."role" = $1::text AND ("d_1"."note" = $2::text OR "d_1"."note" IS NULL)))',
    ['owner', 'x'],
  ],
  [
    'any(@record.team.memberships as m, m.user = @record.owner) or @record.pinned',
    '("d"."pinned" OR EXISTS (SELECT 1 FROM "memberships" AS "d_1" WHERE "d_1"."team_id" = "d"."team_id" AND "d_1"."user_id" = "d"."owner_id"))',
    [],
  ],
  [
    '@record.tags contains @request.query.tag',
    'EXISTS (SELECT 1 FROM "documents_tags" AS "d_1_link" WHERE "d_1_link"."document_id" = "d"."id" AND "d_1_link"."tag_id" = $1::uuid)',
    [TAG],
  ],
  [
    'none(@record.tags as t, t.label = "secret")',
    'NOT EXISTS (SELECT 1 FROM "documents_tags" AS "d_1_link" JOIN "tags" AS "d_1" ON "d_1"."id" = "d_1_link"."tag_id" WHERE "d_1_link"."document_id" = "d"."id" AND "d_1"."label" = $1::text)',
    ['secret'],
  ],
  [
    '@record.pinned or @record.tags contains @request.query.tag',
    '("d"."pinned" OR "d"."id" = ANY(ARRAY(SELECT "d_1_link"."document_id" FROM "documents_tags" AS "d_1_link" WHERE "d_1_link"."tag_id" = $1::uuid)))',
    [TAG],
  ],
  [
    'any(@record.tags as t, t.label = "x") or any(@record.tags as t, t.label = "x")',
    'EXISTS (SELECT 1 FROM "documents_tags" AS "d_1_link" JOIN "tags" AS "d_1" ON "d_1"."id" = "d_1_link"."tag_id" WHERE "d_1_link"."document_id" = "d"."id" AND "d_1"."label" = $1::text)',
    ['x'],
  ],
  ['@request.auth.roles contains "admin" or @record.pinned', '"d"."pinned"', []],
  ['@request.auth.roles contains "member" or @record.pinned', 'TRUE', []],
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
  ['@request.query = "x"', ['path_incomplete', '@request.query']],
  ['@record.team.lead.home.name = "x"', ['path_too_long', '@record.team.lead.home.name']],
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

describe('where', () => {
  it.each(PINNED)('%s', (policy, text, values) => {
    const where = residualOf(policy).where('d');
    expect({ text: where.text, values: where.values }).toEqual({ text, values });
  });

  it('prints one text for requests of one signature, and binds the values of each', () => {
    const policy = compile('@record.owner = @request.auth.id', { catalog, collection: 'documents', action: 'list' });
    const [mine, theirs] = [ME, TAG].map((id) => policy.specialise({ ...REQUEST, auth: { id } }).where('d'));
    expect(mine?.text).toBe(theirs?.text);
    expect([mine?.values, theirs?.values]).toEqual([[ME], [TAG]]);
  });

  it('keeps what wraps a column from an index out of every condition', () => {
    for (const [policy] of PINNED) {
      expect(residualOf(policy).where('d').text).not.toMatch(/DISTINCT|COALESCE|CASE|IS TRUE|LIKE/i);
    }
  });

  it('quotes the alias', () => {
    expect(residualOf('@record.pinned').where('a"b').text).toBe('"a""b"."pinned"');
  });
});
