import { describe, expect, it } from 'vitest';
import { formatPolicies } from '../../src/schema/file/format-policies.ts';
import { parseSchema } from '../../src/schema/load.ts';

const file = (conditions: readonly string[], rule: string): string => `collections:
  teams: { fields: { name: string }, relations: { memberships: { kind: has_many, collection: memberships, via: team } } }
  memberships:
    fields: { level: int }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
  docs:
    fields: { n: int, t: string }
    relations: { team: { kind: belongs_to, collection: teams }, parent: { kind: belongs_to, collection: docs } }
    access:
      view: '${rule}'
conditions:
${conditions.map((each) => `  ${each}`).join('\n')}
`;
const GOOD = [
  "'is_writer(team: teams, least: int)': 'is_member(team) and any(team.memberships as m, m.level >= least)'",
  "'is_member(team: teams)': 'any(team.memberships as m, m.user = @request.auth.id)'",
];
/** The code and the text it marks. */
const found = (conditions: readonly string[], rule = 'true') => {
  const text = file(conditions, rule);
  const lines = text.split('\n');
  return parseSchema(text).issues.map(({ code, line, column, end_column }) => [
    code,
    lines[line - 1]!.slice(column - 1, end_column - 1),
  ]);
};

describe('named conditions', () => {
  it('rules and conditions call conditions, in any order of the file', () => {
    expect(found(GOOD, 'is_writer(@record.team, 2) or is_member(@record.parent.team)')).toEqual([]);
    expect(found(GOOD, 'any(@record.team.memberships as m, is_writer(m.team, m.level))')).toEqual([]);
  });

  it.each<[string, string, string]>([
    ['is_writer(@record.team)', 'argument_count', 'is_writer(@record.team)'],
    ['is_writer(@record.parent, 1)', 'type_mismatch', '@record.parent'],
    ['is_writer(@record.team, "x")', 'type_mismatch', '"x"'],
    ['is_writer(@record.team, 1.5)', 'type_mismatch', '1.5'],
    ['is_writer("x", 1)', 'type_mismatch', '"x"'],
    ['is_writer(@record.team.memberships, 1)', 'type_mismatch', '@record.team.memberships'],
    ['is_writer(@record.team, [1])', 'type_mismatch', '[1]'],
    ['is_writer(@record.tem, 1)', 'name_unknown', 'tem'],
    ['is_membr(@record.team)', 'function_unknown', 'is_membr'],
    ['is_member(@record.team = 1)', 'arguments_malformed', '='],
    ['exists(@record.team.memberships as m, m.level = 1)', 'function_unknown', 'exists'],
    [
      'is_member(@record.parent.parent.parent.parent.parent.team)',
      'path_too_long',
      'is_member(@record.parent.parent.parent.parent.parent.team)',
    ],
  ])('a rule reports %s', (rule, code, marked) => {
    expect(found(GOOD, rule)).toEqual([[code, marked]]);
  });

  it.each<[string, string, string]>([
    ["'a(x: teams)': '@record.n = 1'", 'condition_scope', '@record.n'],
    ["'a(x: teams)': '@request.data.n = 1'", 'condition_scope', '@request.data.n'],
    ["'a(x: int)': 'any(x.y as z, true)'", 'path_not_walked', 'x.y'],
    ["'a(x: teams)': 'any(x.memberships as x, true)'", 'variable_shadowed', 'x'],
    ["'a(x: teams)': 'y = 1'", 'variable_unknown', 'y'],
    ["'a(x: int)': 'y = 1'", 'variable_unknown', 'y'],
    ["'and(x: int)': 'true'", 'word_reserved', "'and(x: int)'"],
    ["'a(or: int)': 'true'", 'word_reserved', "'a(or: int)'"],
    ["'a(x: nope)': 'true'", 'type_unknown', "'a(x: nope)'"],
    ["'a(x: int, x: int)': 'true'", 'parameter_repeated', "'a(x: int, x: int)'"],
    ["'a': 'true'", 'condition_malformed', "'a'"],
    ["a(x: teams): 'true'", 'yaml_unquoted', 'a(x: teams)'],
    ["'a(x: teams)': 'a(x)'", 'condition_cycle', 'a'],
  ])('a declaration reports, used or not, %s', (condition, code, marked) => {
    expect(found([condition])).toEqual([[code, marked]]);
  });

  it('conditions must not call each other in a circle, nor be declared twice', () => {
    expect(found(["'a(x: teams)': 'b(x)'", "'b(x: teams)': 'a(x)'"], 'a(@record.team)')).toEqual([
      ['condition_cycle', 'a'],
    ]);
    expect(found(["'a()': 'true'", "'a(x: int)': 'true'"])).toEqual([['condition_repeated', "'a(x: int)'"]]);
  });

  it('expanded conditions count against the limits, which ends an explosion', () => {
    const doubling = Array.from({ length: 40 }, (_, i) => `'c${i + 1}(x: int)': 'c${i}(x) and c${i}(x)'`);
    const issues = found(["'c0(x: int)': 'x = 1'", ...doubling], 'c40(@record.n)');
    expect(issues.find(([code]) => code !== 'redundant')).toEqual(['too_many_comparisons', 'c8(x)']);
  });

  it('an error in an expanded body shows both places', () => {
    const rule = 'is_member(@record.parent.parent.parent.parent.parent.team)';
    const [issue] = parseSchema(file(GOOD, rule)).issues;
    expect(issue!.message).toBe(
      'a path of 7 names; expected at most 6, in `team.memberships` of the condition `is_member`',
    );
  });

  it('the formatter treats conditions as policies', () => {
    const text = file(["'a(x: int)': 'x==1 || x = 2'", "'b(x: int)': '!( x=1 )'"], 'true');
    expect(formatPolicies(text).issues.length).toBeGreaterThan(0);
    const right = file(["'b(x: int)': '!( x=1 )'"], 'true');
    expect(formatPolicies(right).text).toBe(file(["'b(x: int)': 'not x = 1'"], 'true'));
  });
});
