/** The checked tree: names resolved, literals in their final type. */
import { describe, expect, it } from 'vitest';
import { unindexed } from '../../../src/policy/analyse/unindexed.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import type { Checked, CheckedCompare, CheckedOperand } from '../../../src/policy/types.ts';
import { memberName } from '../../../src/policy/visit.ts';
import { SAMPLE } from '../sample-catalog.ts';

function checkedOf(text: string): Checked {
  const { checked, issues } = examine(text, { catalog: SAMPLE, collection: 'documents', action: 'update' });
  expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
  return checked!;
}
const compareOf = (text: string): CheckedCompare => checkedOf(text) as CheckedCompare;

/** `documents.team>teams.name?: string`, `query q: string[]`, `5: int`. */
function brief(operand: CheckedOperand): string {
  const type = typeof operand.type === 'object' ? `id of ${operand.type.id}` : operand.type;
  switch (operand.kind) {
    case 'column': {
      const { column } = operand;
      const scope = operand.scope.kind === 'variable' ? operand.scope.name : operand.scope.kind;
      const steps = operand.steps.map(({ from, relation }) => `${from}.${relation.name}>`).join('');
      const last = column.kind === 'id' ? 'id' : memberName(column);
      return `${scope}:${steps}${last}${operand.nullable ? '?' : ''}: ${type}`;
    }
    case 'request':
      return `${operand.source} ${operand.name}: ${type}${operand.list ? '[]' : ''}`;
    case 'literal':
      return `${JSON.stringify(operand.value)}${operand.exact ? ` exactly ${operand.exact}` : ''}: ${type}${operand.list ? '[]' : ''}`;
    case 'now':
      return `now ${operand.seconds}`;
    case 'count':
      return `count of ${operand.path.relation.name}${operand.nullable ? '?' : ''}`;
  }
}

const ID = '0190A6C0-0000-7000-8000-00000000000F';

describe('the two sides of a comparison', () => {
  it.each([
    ['@record.owner = @request.auth.id', 'record:owner: id of users', 'auth id: id of users'],
    ['@record.owner_id = @request.auth.id', 'record:owner: id of users', 'auth id: id of users'],
    ['@next.team_id.name = "x"', 'next:documents.team>name?: string', '"x": string'],
    [
      '@record.team.lead.email = @request.auth.email',
      'record:documents.team>teams.lead>email?: string',
      'auth email: string',
    ],
    ['@record.team = @request.auth.home_id', 'record:team?: id of teams', 'auth home: id of teams'],
    ['@record.cover = @request.query.cover', 'record:documents.cover>id?: id of covers', 'query cover: id of covers'],
    ['@record.id = @request.query.id', 'record:id: id of documents', 'query id: id of documents'],
    ['@record.title = @record.owner', 'record:title: string', 'record:owner: id of users'],
    [`@record.owner = "${ID}"`, 'record:owner: id of users', `"${ID.toLowerCase()}": id of users`],
    [
      '@record.due_at < "2024-01-31T12:00:00+02:00"',
      'record:due_at?: datetime',
      '"2024-01-31T10:00:00.000000Z": datetime',
    ],
    ['@request.query.since < @now - 24h', 'query since: datetime', 'now -86400'],
    ['@request.query.a = @request.query.b', 'query a: string', 'query b: string'],
    ['@request.query.n >= 2', 'query n: int', '2: int'],
    ['@request.query.n >= 2.5', 'query n: float', '2.5: float'],
    ['@request.data.owner_id = @request.auth.id', 'data owner: id of users', 'auth id: id of users'],
    ['@record.score >= 1.5', 'record:score?: int', '1.5: float'],
    ['@record.score = 1e2', 'record:score?: int', '100: int'],
    ['@record.score = -0', 'record:score?: int', '0: int'],
    ['@record.rating = 3', 'record:rating?: float', '3: float'],
    ['@record.rating = 0.1', 'record:rating?: float', '0.1: float'],
    ['@record.rating = 1e300', 'record:rating?: float', '1e+300: float'],
    ['@record.rating < -9007199254740993', 'record:rating?: float', '-9007199254740992: float'],
    ['@record.rating > 1e-400', 'record:rating?: float', '0: float'],
    ['@record.rating < 1e400', 'record:rating?: float', 'null exactly 1e400: float'],
    ['@record.rating in [1e300, 1e400, 2]', 'record:rating?: float', '[1e+300,2]: float[]'],
    ['@request.query.n = 1e300', 'query n: float', '1e+300 exactly 1e300: float'],
    ['@record.score < 9007199254740993', 'record:score?: int', '9007199254740992 exactly 9007199254740993: float'],
    ['@record.score >= 1.00000000000000000001', 'record:score?: int', '1 exactly 1.00000000000000000001: float'],
    ['@record.score < 1e400', 'record:score?: int', 'null exactly 1e400: float'],
    ['@record.score in [1, 2]', 'record:score?: int', '[1,2]: int[]'],
    ['@record.score in [1, 1.5, 9007199254740993]', 'record:score?: int', '[1,1.5]: float[]'],
    [
      '@record.score in [9007199254740993]',
      'record:score?: int',
      '[9007199254740992] exactly 9007199254740993: float[]',
    ],
    [`@record.team not in ["${ID}"]`, 'record:team?: id of teams', `["${ID.toLowerCase()}"]: id of teams[]`],
    ['@record.status in @request.query.status', 'record:status: string', 'query status: string[]'],
    ['@request.query.mode in ["a"]', 'query mode: string', '["a"]: string[]'],
    ['"admin" in @request.auth.roles', '"admin": string', 'auth roles: string[]'],
    ['@request.auth.roles contains "admin"', 'auth roles: string[]', '"admin": string'],
    ['@request.query.owners contains @record.owner', 'query owners: id of users[]', 'record:owner: id of users'],
    ['["draft"] contains @record.status', '["draft"]: string[]', 'record:status: string'],
    ['@record.title contains @request.query.q', 'record:title: string', 'query q: string'],
    ['@record.pinned', 'record:pinned: bool', 'true: bool'],
  ])('%s', (policy, left, right) => {
    const compare = compareOf(policy);
    expect([brief(compare.left), brief(compare.right)]).toEqual([left, right]);
  });

  it('the checker turns `contains` of a to-many relation into `any`', () => {
    const any = checkedOf('@record.team.memberships contains @request.query.m') as Extract<
      Checked,
      { kind: 'quantified' }
    >;
    const condition = any.condition as CheckedCompare;
    expect([any.quantifier, any.path.from, any.path.relation.name, any.variable]).toEqual([
      'any',
      'teams',
      'memberships',
      'element',
    ]);
    expect([condition.op, brief(condition.left), brief(condition.right)]).toEqual([
      '=',
      'element:id: id of memberships',
      'query m: id of memberships',
    ]);
  });

  it('the checker gives every variable a unique name', () => {
    const both = checkedOf(
      'any(@record.tags as t, t.label = "a") and any(@record.tags as t, t.label = "b" and t = @request.query.t)',
    );
    expect(JSON.stringify(both).match(/"variable":"\w+"/g)).toEqual(['"variable":"t"', '"variable":"t_2"']);
    expect(JSON.stringify(both)).toContain('"scope":{"kind":"variable","name":"t_2"}');
  });
});

describe('the index that a policy lacks', () => {
  it.each([
    ['@record.status = "draft"', ['status']],
    ['@record.status = "draft" or @record.title starts with "a"', ['status', 'title']],
    ['@record.status = "draft" or @record.owner = @request.auth.id', ['status']],
    ['@request.auth.roles contains "admin" or @record.score > 5', ['score']],
    ['@record.status = "draft" and @record.owner = @request.auth.id', undefined],
    ['any(@record.team.memberships as m, m.user = @request.auth.id)', undefined],
    ['@record.status != "draft"', undefined],
    ['@request.auth.roles contains "admin"', undefined],
    ['true', undefined],
  ])('%s', (policy, columns) => {
    expect(unindexed(checkedOf(policy), SAMPLE, 'documents')?.columns).toEqual(columns);
  });

  it('the missing index comes as a statement', () => {
    expect(unindexed(checkedOf('@record.status = "draft"'), SAMPLE, 'documents')?.createIndex).toBe(
      'CREATE INDEX ON "documents" ("status");',
    );
  });
});
