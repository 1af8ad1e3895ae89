/** Rules that trust records which callers may make for themselves. */
import { describe, expect, it } from 'vitest';
import { parseSchema } from '../../../src/schema/load.ts';

const ME = '@request.auth.id';
const TRUSTS = `'any(@record.memberships as m, m.user = ${ME} and m.role = "owner")'`;

interface World {
  readonly create?: string;
  readonly update?: string;
  readonly trusts?: string;
  readonly teams?: string;
  readonly role?: string;
}

function warned({
  create = '[]',
  update = '[]',
  trusts = TRUSTS,
  teams = 'true',
  role = '',
}: World): readonly string[] {
  const text = `
roles: [admin, member]
register: { roles: [member] }
collections:
  users:
    relations: { memberships: { kind: has_many, collection: memberships, via: user } }
  teams:
    fields: { name: { type: string, max: 9 } }
    relations: { memberships: { kind: has_many, collection: memberships, via: team }, founder: { kind: belongs_to, collection: users } }
    access: { read: ${teams}, update: ${trusts} }
  memberships:
    fields: { role: { type: string, required: true, enum: [owner, reader]${role} }, note: { type: string, max: 9 } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true, on_delete: cascade }
    access: { create: ${create}, update: ${update} }
`;
  const { issues } = parseSchema(text);
  return issues.map(({ severity, code, path, message }) => {
    const trusted = /the rule `([^`]*)`/.exec(message)?.[1];
    return `${severity} ${code} ${path}${trusted === undefined ? '' : ` for ${trusted}`}`;
  });
}

const MADE = ['warning self_made collections.memberships.access.create for teams.access.update'];
const CHANGED = ['warning self_made collections.memberships.access.update for teams.access.update'];

describe('a membership that its own member may write', () => {
  it.each<[string, World, readonly string[]]>([
    ['users make their own', { create: `'@record.user = ${ME}'` }, MADE],
    [
      'members make their own',
      { create: `[{ roles: [member], when: '@record.user = ${ME}' }]` },
      [MADE[0]!.replace(' for', '[0].when for')],
    ],
    ['users change their own', { update: `'@record.user = ${ME}'` }, CHANGED],
    ['one of two branches is open', { create: `'@record.user = ${ME} or @record.team.founder = ${ME}'` }, MADE],
    [
      "the rule begins at the caller's own memberships",
      { create: `'@record.user = ${ME}'`, trusts: `'any(@request.auth.memberships as m, m.team = @record.id)'` },
      MADE,
    ],
    ['an administrator makes them', { create: `[{ roles: [admin] }]` }, []],
    ['the founder makes them', { create: `'@record.team.founder = ${ME}'` }, []],
    ['users make readers only', { create: `'@record.user = ${ME} and @record.role = "reader"'` }, []],
    ['users change their note only', { update: `'@record.user = ${ME} and changed_only(@record.note)'` }, []],
    ['users keep their role', { update: `'@record.user = ${ME} and not changed(@record.role, @record.team)'` }, []],
    [
      'the role has a rule of its own',
      { create: `'@record.user = ${ME}'`, role: ', access: { write: [{ roles: [admin] }] }' },
      [],
    ],
    ['strangers cannot read the team', { create: `'@record.user = ${ME}'`, teams: `'@record.founder = ${ME}'` }, []],
    [
      'the rule trusts the absence of one',
      {
        create: `'@record.user = ${ME}'`,
        trusts: `'@record.founder = ${ME} and none(@record.memberships as m, m.user = ${ME})'`,
      },
      [],
    ],
    ['the rule is marked as intended', { create: `'/* intended: anyone may join */ @record.user = ${ME}'` }, []],
  ])('the checker warns of a trusted membership, or not, where %s', (_, world, expected) => {
    expect(warned(world)).toEqual(expected);
  });
});

describe('a hidden unique value', () => {
  const found = (code: string, create = 'true'): readonly string[] =>
    parseSchema(`
roles: [hr, member]
register: { roles: [member] }
collections:
  vault:
    fields: { title: { type: string, max: 9 }, code: { type: string, max: 9, unique: true${code} } }
    access: { read: true, create: ${create} }
`).issues.map((issue) => `${issue.severity} ${issue.code} ${issue.path}`);

  it.each<[string, string, string, readonly string[]]>([
    [
      'strangers set it and do not read it',
      ', access: { read: [{ roles: [hr] }] }',
      'true',
      ['warning guessable collections.vault.fields.code.access.read[0]'],
    ],
    [
      'nobody reads it',
      ', access: { read: [] }',
      '[{ roles: [member] }]',
      ['warning guessable collections.vault.fields.code.access.read'],
    ],
    ['strangers read it', ', access: { read: true }', 'true', []],
    ['everyone reads it', '', 'true', []],
    ['HR sets it', ', access: { read: [{ roles: [hr] }], write: [{ roles: [hr] }] }', 'true', []],
    ['HR makes the records', ', access: { read: [{ roles: [hr] }] }', '[{ roles: [hr] }]', []],
    [
      'it is marked as intended',
      ', access: { read: \'/* intended: a lottery */ @request.auth.roles contains "hr"\' }',
      'true',
      [],
    ],
  ])('the checker warns of a hidden unique value, or not, where %s', (_, code, create, expected) => {
    expect(found(code, create)).toEqual(expected);
  });
});
