import { describe, expect, it } from 'vitest';
import { type Clause, explain } from '../../../src/policy/analyse/explanation.ts';
import { examine } from '../../../src/policy/check/checker.ts';
import { hasAnyRole } from '../../../src/policy/check/roles-condition.ts';
import { NO_RELATED } from '../../../src/policy/types.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { SAMPLE } from '../../policy/sample-catalog.ts';

describe('the roles of a rule', () => {
  it.each([[['admin']], [['admin', 'editor', 'member']]])('%j: the tree is the one of the text', (roles) => {
    const catalog = { ...SAMPLE, roles: new Map(roles.map((role) => [role, {}])) };
    const { text, checked } = hasAnyRole(roles);
    expect(examine(text, { catalog, collection: 'documents', action: 'list' })).toEqual({ checked, issues: [] });
  });

  const WHEN = '@record.n = 1  or\n  @record.n = 2';
  const { schema } = parseSchema(`roles: [a, b]
collections:
  posts:
    fields: { n: int }
    access: { read: [{ roles: [a, b], when: ${JSON.stringify(WHEN)} }] }
`);
  const [policy] = schema!.collections.get('posts')!.access.read;
  const clauseFor = (roles: readonly string[], n: number): Clause => {
    const request = { auth: { id: 'x', roles }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
    return explain({ policy: policy!, request, record: { id: 'r', n }, related: NO_RELATED }).clause;
  };

  it('roles and condition join as trees: spans point into the source text', () => {
    const { source, checked } = policy!;
    expect(source.startsWith(WHEN)).toBe(true);
    const spans = checked.kind === 'and' ? checked.items.map(({ span }) => source.slice(span.start, span.end)) : [];
    expect(spans).toEqual(['@request.auth.roles contains "a" or @request.auth.roles contains "b"', WHEN]);
  });

  it('an explanation shows the whole rule, then its parts as written', () => {
    const shown = ({ text, value, parts }: Clause): unknown => [text, value, ...parts.map(shown)];
    expect(shown(clauseFor(['b'], 3))).toEqual([
      `(@request.auth.roles contains "a" or @request.auth.roles contains "b") and (${WHEN})`,
      false,
      [
        '@request.auth.roles contains "a" or @request.auth.roles contains "b"',
        true,
        ['@request.auth.roles contains "a"', false],
        ['@request.auth.roles contains "b"', true],
      ],
      [WHEN, false, ['@record.n = 1', false], ['@record.n = 2', false]],
    ]);
  });
});

describe('`view`', () => {
  const loaded = (access: string) =>
    parseSchema(`roles: [a]\ncollections:\n  posts:\n    fields: { n: int, hidden: bool }\n    access: ${access}\n`);

  it('`view` gives `list` and `read`, and leaves the other actions denied', () => {
    const { schema, issues } = loaded("{ view: [{ roles: [a] }, { when: '@record.n = 1' }], delete: true }");
    const { access } = schema!.collections.get('posts')!;
    const texts = Object.entries(access).map(([action, rules]) => [action, rules.map(({ text }) => text)]);
    const both = ['@request.auth.roles contains "a"', '@record.n = 1'];
    expect(texts).toEqual([
      ['list', both],
      ['read', both],
      ['create', []],
      ['update', []],
      ['delete', ['true']],
    ]);
    expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  it('an error in `view` is reported once, at its place', () => {
    const { issues } = loaded("{ view: '@record.m = 1' }");
    expect(issues.map(({ code, path }) => [code, path])).toEqual([['name_unknown', 'collections.posts.access.view']]);
  });

  it.each(['list', 'read'])('`view` excludes `%s`', (key) => {
    const { schema, issues } = loaded(`{ view: true, ${key}: true }`);
    expect(schema).toBeUndefined();
    expect(issues).toMatchObject([{ code: 'view_conflict', path: `collections.posts.access.${key}` }]);
  });
});
