/** Decisions of rules that read the body, before it arrives: they may deny only if no body could allow. */
import { describe, expect, test } from 'vitest';
import { compilePolicy } from '../../src/policy/compile.ts';
import type { PolicyRequest } from '../../src/policy/types.ts';
import { schemaFrom } from '../support/service.ts';

const schema = schemaFrom(`
roles: [admin, member]
collections:
  teams:
    fields: { name: string }
    relations: { notes: { kind: has_many, collection: notes, via: team } }
  notes:
    fields: { level: int, text: string }
    relations: { team: { kind: belongs_to, collection: teams } }
`);
const ID = '01900000-0000-7000-8000-000000000000';
const member: PolicyRequest = {
  auth: { id: ID, roles: ['member'] },
  query: { mode: 'x' },
  now: '2026-01-01T00:00:00.000000Z',
};
const beforeBody = (text: string) =>
  compilePolicy(text, { catalog: schema, collection: 'notes', action: 'create' }).beforeBody;

describe('before the body', () => {
  const admin = '@request.auth.roles contains "admin"';
  test.each([
    [`${admin} and @request.data.level > 1`, 'deny'],
    [`${admin} and not (@request.data.level > 1)`, 'deny'],
    [`not (not ${admin} or @request.data.level > 1)`, 'deny'],
    [`${admin} and @request.data.level is null`, 'deny'],
    [`${admin} and @record.level > 1 and @request.data.text = "a"`, 'deny'],
    [`@request.query.mode = "y" and none(@record.team.notes as n, n.level = @request.data.level)`, 'deny'],
    [`${admin} or @request.data.level > 1`, 'allow'],
    ['not (@request.data.level > 1)', 'allow'],
    ['not (@request.data.level > 1 and @request.query.mode = "x")', 'allow'],
    ['@request.data.level is not null and @record.level > 1', 'depends'],
    ['none(@record.team.notes as n, n.level = @request.data.level)', 'depends'],
    ['not all(@record.team.notes as n, n.level = @request.data.level)', 'depends'],
  ])('%s: %s', (text, verdict) => expect(beforeBody(text)?.specialise(member).verdict).toBe(verdict));

  test('a rule that does not read the body has no second form', () => {
    expect(beforeBody('@record.level > 1')).toBeUndefined();
  });
});
