/** Rules of fields and belongs_to, as the schema reads them. */
import { describe, expect, it } from 'vitest';
import { openapiOf } from '../../src/describe/openapi-document.ts';
import { typescriptOf } from '../../src/describe/typescript.ts';
import { routes } from '../../src/routes/index.ts';
import { formatPolicies } from '../../src/schema/file/format-policies.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { MemberAccess } from '../../src/schema/model/model.ts';

const TEXT = `roles: [hr, member]
collections:
  users:
    fields:
      clearance: { type: int, access: { write: [{ roles: [hr] }] } }
      mood: string
    access: { update: '@record.id = @request.auth.id' }
  people:
    fields:
      name: { type: string, required: true }
      salary: { type: float, required: true, access: { read: [{ roles: [hr] }, { when: '@record.owner = @request.auth.id' }], write: [{ roles: [hr] }] } }
      level: { type: int, access: { write: 'changed_only(@record.level) and @next.level > @record.level' } }
      token: { type: string, access: { read: [], write: [] } }
    relations:
      owner: { kind: belongs_to, collection: users, access: { read: true } }
    access: { list: true, read: true }
`;
const { schema, issues } = parseSchema(TEXT);
const people = schema!.collections.get('people')!;

/** The texts of the rules of each action. */
const shown = (access: MemberAccess | undefined): object =>
  Object.fromEntries(Object.entries(access ?? {}).map(([action, rules]) => [action, rules.map(({ text }) => text)]));

describe('rules of members', () => {
  it('a rule for writing a member is one for create and one for update', () => {
    expect(issues).toEqual([]);
    const hr = '@request.auth.roles contains "hr"';
    expect([...people.memberAccess.keys()]).toEqual(['salary', 'level', 'token', 'owner']);
    expect(shown(people.memberAccess.get('salary'))).toEqual({
      read: [hr, '@record.owner = @request.auth.id'],
      create: [hr],
      update: [hr],
    });
    expect(shown(people.memberAccess.get('token'))).toEqual({ read: [], create: [], update: [] });
    expect(shown(people.memberAccess.get('owner'))).toEqual({ read: ['true'] });
    expect(people.memberAccess.get('level')!.update![0]!.namesNext).toBe(true);
  });

  it('the formatter treats rules of members like rules of actions', () => {
    const { text, changed } = formatPolicies(
      TEXT.replace("'@record.owner = @request.auth.id' }]", "'@record.owner=@request.auth.id' }]"),
    );
    expect([text, changed]).toEqual([TEXT, ['collections.people.fields.salary.access.read[1].when']]);
  });

  it('rules make members optional for clients, and change no other type', () => {
    // biome-ignore lint/suspicious/noExplicitAny: the document is JSON
    const { schemas } = (openapiOf(schema!, routes, '1') as any).components;
    expect(schemas.Person.required).toEqual(['id', 'created_at', 'updated_at', 'name', 'level']);
    expect(Object.keys(schemas.Person.properties)).toContain('salary');
    expect(schemas.PersonCreate.required).toEqual(['name', 'salary']);
    const types = typescriptOf(schema!);
    const [person] = /export interface Person \{[^}]*/.exec(types)!;
    expect(person).toContain('  salary?: number;\n');
    expect(person).toContain('  level: number | null;\n');
    expect(person).toContain('  token?: string | null;\n');
    expect(person).toContain('  owner?: Id | null;\n');
    expect(types).toContain('export interface PersonCreate {\n  name: string;\n  salary: number;\n');
  });
});

describe('trust in what the caller may set', () => {
  const warned = (rule: string): readonly string[] =>
    parseSchema(TEXT.replace('access: { read: true }', `access: { read: '${rule}' }`)).issues.map(
      ({ code, path }) => `${code} ${path}`,
    );
  it('the checker warns of misplaced trust in rules of members', () => {
    expect(warned('@request.auth.mood = "good"')).toEqual([
      'self_chosen collections.people.relations.owner.access.read',
    ]);
  });
  it('a rule may trust a field that only a role sets', () => {
    expect(warned('@request.auth.clearance > 3')).toEqual([]);
  });
});
