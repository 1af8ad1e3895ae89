import { expect, it } from 'vitest';
import { parseSchema } from '../../../src/schema/load.ts';

/** The paths of the warnings, where users are updated by this rule and notes are listed by that one. */
function warned(update: string, list: string): readonly string[] {
  const text = `
roles: [admin, member]
collections:
  users:
    fields: { department: string }
    access: { update: ${update} }
  notes:
    fields: { department: { type: string, required: true, index: true } }
    access: { list: ${list} }
`;
  const { issues } = parseSchema(text);
  return issues.map(({ code, severity, path }) => `${severity} ${code} ${path}`);
}
const TRUSTS = `'@record.department = @request.auth.department'`;

it.each([
  [
    'a user changes it',
    `'@record.id = @request.auth.id'`,
    TRUSTS,
    ['warning self_chosen collections.notes.access.list'],
  ],
  [
    'the rule stands in a list',
    `'@record.id = @request.auth.id'`,
    `[{ when: ${TRUSTS} }]`,
    ['warning self_chosen collections.notes.access.list[0].when'],
  ],
  [
    'another rule lets a user change it',
    `[{ roles: [admin] }, { when: '@record.id = @request.auth.id' }]`,
    TRUSTS,
    ['warning self_chosen collections.notes.access.list'],
  ],
  ['a role changes it', '[{ roles: [admin] }]', TRUSTS, []],
  ['the rule keeps it', `'@record.id = @request.auth.id and @next.department = @record.department'`, TRUSTS, []],
  ['the rule keeps it unchanged', `'@record.id = @request.auth.id and not changed(@record.department)'`, TRUSTS, []],
  [
    'the rule changes another field only',
    `'@record.id = @request.auth.id and changed_only(@record.email)'`,
    TRUSTS,
    [],
  ],
  ['no caller changes users', '[]', TRUSTS, []],
  ['it is not trusted', `'@record.id = @request.auth.id'`, `'@record.department = "sales"'`, []],
])('a policy that trusts a field of the caller, where %s', (_, update, list, expected) => {
  expect(warned(update, list)).toEqual(expected);
});
