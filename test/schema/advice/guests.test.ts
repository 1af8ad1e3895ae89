/** Guests in a schema: the rules that they meet, the warnings, and the table of `bylaw check`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../../../src/cli/index.ts';
import { guestRows } from '../../../src/schema/advice/guest-table.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { schemaFrom } from '../../support/service.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-guests-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const schemaOf = (access: string, head = 'guests: true'): string => `
roles: [admin, member]
${head}
collections:
  posts:
    fields: { title: string, open: { type: bool, required: true, default: false } }
    relations: { owner: { kind: belongs_to, collection: users } }
    access: { ${access} }
    soft_delete: ${access.includes('restore')}
  users: { relations: { posts: { kind: has_many, collection: posts, via: owner } } }
`;
const codesOf = (text: string): readonly string[] => parseSchema(text).issues.map(({ code }) => code);

test.each<[string, string]>([
  ['true', 'all'],
  ['@record.open', 'some'],
  ['@record.owner = @request.auth.id', '-'],
  ['@record.owner != @request.auth.id', '-'],
  ['not (@record.owner = @request.auth.id)', '-'],
  ['@request.auth.id is not null', '-'],
  ['@request.auth.email_verified', '-'],
  ['any(@request.auth.posts as p, true)', '-'],
  ['none(@request.auth.posts as p, true)', '-'],
  ['@record.open or @record.owner = @request.auth.id', 'some'],
  ['@request.auth.roles contains "member"', '-'],
  ['not (@request.auth.roles contains "member")', 'all'],
  ['"member" not in @request.auth.roles', 'all'],
  ['@request.auth.roles contains "guest" and @record.open', 'some'],
  ['@request.query.q = "x"', 'some'],
  ['@request.auth.id is null', 'all'],
  ['@request.auth.second_factor', '-'],
  ['not @request.auth.second_factor', 'all'],
  ['@request.auth.second_factor = false or @record.open', 'all'],
  ['@request.auth.signed_in_at < @now', '-'],
])('the rule %s gives guests: %s', (rule, access) => {
  const [row] = guestRows(schemaFrom(schemaOf(`list: '${rule}'`)));
  expect(row?.actions ?? ['-', '-', '-', '-', '-']).toEqual([access, '-', '-', '-', '-']);
});

test.each<[string, readonly string[]]>([
  ['create: true', ['guests_write']],
  [`update: '@record.open and @request.auth.roles contains "member"'`, []],
  [`delete: '@record.open'`, ['no_caller', 'guests_write']],
  ['create: [{ roles: [member] }]', []],
  ['create: [{ roles: [guest, member], when: true }]', []],
  [`create: '/* intended: a guest book */ true'`, []],
  [`list: 'not (@request.auth.roles contains "member")'`, ['guests_pass']],
  [`list: '"member" not in @request.auth.roles and @record.open'`, ['guests_pass']],
  [`list: '@record.owner = @request.auth.id and not (@request.auth.roles contains "member")'`, []],
  [`list: 'not @request.auth.second_factor'`, ['guests_pass']],
  [`list: '@request.auth.second_factor != true and @record.open'`, ['guests_pass']],
  [`create: '@request.auth.second_factor'`, []],
  [`create: '@request.auth.signed_in_at > @now - 1h'`, []],
  [`list: [{ roles: [member], when: 'not (@request.auth.roles contains "admin")' }]`, []],
  [`list: '@request.auth.id is null'`, []],
  [`restore: '@record.open and @record.deleted_at > @now - 1d'`, ['guests_write']],
  [`restore: [{ roles: [member] }]`, []],
])('the warnings of { %s } are %j', (access, codes) => {
  expect(codesOf(schemaOf(access))).toEqual(codes);
});

test('without guests, rules do not know the role, and say who `is null` means', () => {
  expect(codesOf(schemaOf('list: [{ roles: [guest] }]', ''))).toEqual(['role_unknown']);
  expect(codesOf(schemaOf(`list: '@request.auth.id is null'`, ''))).toEqual(['anonymous_only']);
  expect(codesOf(schemaOf('create: true', ''))).toEqual([]);
  expect(guestRows(schemaFrom(schemaOf('list: true', '')))).toEqual([]);
});

test('the role of guests is not declared, not given by registration, and not assigned', () => {
  expect(codesOf('roles: [guest]\nguests: true\n')).toContain('reserved_role');
  expect(codesOf('roles: [member]\nguests: true\nregister: { roles: [guest] }\n')).toContain('role_unknown');
  expect(codesOf('roles: { lead: { assigns: [guest] } }\nguests: true\n')).toContain('role_unknown');
  expect(codesOf('roles: { lead: { includes: [guest] } }\nguests: true\n')).toContain('role_unknown');
});

test('the facts of a session are no members of users', () => {
  const codes = (name: string) => codesOf(`collections: { users: { fields: { ${name}: bool } } }\n`);
  expect(['second_factor', 'signed_in_at', 'third_factor'].map(codes)).toEqual([['name_taken'], ['name_taken'], []]);
});

test('bylaw check prints the table', async () => {
  const checked = async (text: string) => {
    writeFileSync(join(folder, 'bylaw.yaml'), text);
    let stdout = '';
    const io = {
      stdout: { write: (part: string) => (stdout += part) },
      stderr: { write: () => true },
      stdin: process.stdin,
      env: {},
      cwd: folder,
    };
    await runCommand(['check'], io as unknown as Parameters<typeof runCommand>[1]);
    return stdout;
  };
  const access = `list: '@record.open', read: true, create: [{ roles: [guest] }]`;
  const head = 'what guests may do (`some`: the record or the request decides)';
  expect((await checked(schemaOf(access))).split('\n').slice(0, 3)).toEqual([
    head,
    '       list  read  create  update  delete',
    'posts  some  all   all     -       -',
  ]);
  expect((await checked(schemaOf(`restore: true`))).split('\n').slice(0, 3)).toEqual([
    head,
    '       list  read  create  update  delete  restore',
    'posts  -     -     -       -       -       all',
  ]);
  expect(await checked(schemaOf(`list: [{ roles: [member] }]`))).toMatch(/^guests may do nothing/);
  expect(await checked(schemaOf(access.replace(', create: [{ roles: [guest] }]', ''), ''))).not.toContain('guests may');
});
