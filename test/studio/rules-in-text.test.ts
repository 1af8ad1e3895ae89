/** Rules that the studio writes into a schema file: read back, and with the rest of the file as it was. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeCatalog } from '../../src/policy/request/catalog-document.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { issuesOf, type ToolPlace } from '../../src/studio/editor/policy-tools.ts';
import { type RulePath, readRules, withoutRule, withRoles, withRule } from '../../src/studio/editor/rules-in-text.ts';

const SAMPLE = readFileSync(join(import.meta.dirname, '../../bylaw.yaml'), 'utf8');
const FORMS = `# Kept.
roles: { admin: {}, editor: {}, member: {} }
collections:
  posts:
    fields:
      title: string
      score: { type: int } # kept
    access:
      list: true
      read: '@record.score > 1'
      update:
        # A comment stays.
        - roles: [editor]
        - when: >-
            @record.title = "a"
            and @record.score = 1
          message: only a

  notes: { fields: { text: string }, access: { read: [{ roles: [admin] }] } }
`;
const of = (collection: string, ...rest: readonly string[]): RulePath => ['collections', collection, ...rest];
const RULE = { roles: ['admin'], when: `@record.id is not null /* it's */` };
const shown = (text: string, path: RulePath) => readRules(text, path)!.map(({ place: _, ...rule }) => rule);

describe('rules in the text of a schema', () => {
  for (const [name, text, path] of [
    ['a boolean', FORMS, of('posts', 'access', 'list')],
    ['an expression', FORMS, of('posts', 'access', 'read')],
    ['a list of lines', FORMS, of('posts', 'access', 'update')],
    ['a list on one line', FORMS, of('notes', 'access', 'read')],
    ['an action without rules', FORMS, of('posts', 'access', 'delete')],
    ['a short field', FORMS, of('posts', 'fields', 'title', 'access', 'read')],
    ['a field on one line', FORMS, of('posts', 'fields', 'score', 'access', 'write')],
    ['a field of a collection on one line', FORMS, of('notes', 'fields', 'text', 'access', 'write')],
    ['a collection that the file does not name', FORMS, of('files', 'access', 'read')],
    ...['list', 'read', 'create', 'update', 'delete'].map(
      (action) => [`${action} of the sample`, SAMPLE, of('documents', 'access', action)] as const,
    ),
  ] as const) {
    test(`${name} takes one more rule, and loses it again`, () => {
      const before = shown(text, path);
      const added = withRule(text, path, RULE)!;
      expect(shown(added, path)).toEqual([...before, RULE]);
      expect(parseSchema(added).issues.filter(({ severity }) => severity === 'error')).toEqual([]);
      expect(shown(withoutRule(added, path, before.length)!, path)).toEqual(before);
      for (const comment of text.matchAll(/#.*/g)) expect(added).toContain(comment[0]);
      // Every line without a rule of the path is there.
      expect(added.split('\n').filter((line) => text.includes(line)).length).toBeGreaterThan(
        text.split('\n').length - 3,
      );
    });
  }

  test('the first and the last rule are removed, and nobody is allowed without rules', () => {
    const path = of('posts', 'access', 'update');
    const last = withoutRule(FORMS, path, 1)!;
    expect(shown(last, path)).toEqual([{ roles: ['editor'] }]);
    expect(shown(withoutRule(FORMS, path, 0)!, path)).toEqual([
      { roles: [], when: '@record.title = "a" and @record.score = 1', message: 'only a' },
    ]);
    const none = withoutRule(last, path, 0)!;
    expect(none).toContain('update:\n        # A comment stays.\n        []');
    expect(parseSchema(none).schema!.collections.get('posts')!.access.update).toEqual([]);
    expect(parseSchema(withoutRule(FORMS, of('posts', 'access', 'read'), 0)!).schema).toBeDefined();
  });

  test.each([
    ['an expression', of('posts', 'access', 'read'), 0, ['admin'], "{ roles: [admin], when: '@record.score > 1' }"],
    ['a boolean', of('posts', 'access', 'list'), 0, ['admin'], "{ roles: [admin], when: 'true' }"],
    ['roles alone', of('posts', 'access', 'update'), 0, ['editor', 'admin'], '- roles: [editor, admin]'],
    ['the last role', of('posts', 'access', 'update'), 0, [], "- { when: 'false' }"],
    ['a condition on lines', of('posts', 'access', 'update'), 1, ['member'], '- roles: [member]\n          when: >-'],
    ['a rule on one line', of('notes', 'access', 'read'), 0, ['member'], '[{ roles: [member] }]'],
  ] as const)('the roles of %s change in their place', (_, path, index, roles, written) => {
    const before = shown(FORMS, path);
    const changed = withRoles(FORMS, path, { index, roles })!;
    expect(changed).toContain(written);
    const { when, ...others } = before[index]!;
    const condition = when ?? (roles.length === 0 ? 'false' : undefined);
    const expected = { ...others, roles, ...(condition !== undefined && { when: condition }) };
    expect(shown(changed, path)).toEqual(before.toSpliced(index, 1, expected));
    expect(parseSchema(changed).issues.filter(({ severity }) => severity === 'error')).toEqual([]);
    for (const comment of FORMS.matchAll(/#.*/g)) expect(changed).toContain(comment[0]);
  });

  test('the place of a condition has its quotes, and no line break behind a block', () => {
    const placed = (action: string, index: number) => {
      const { offset, length } = readRules(FORMS, of('posts', 'access', action))![index]!.place!;
      return FORMS.slice(offset, offset + length);
    };
    expect(placed('read', 0)).toBe(`'@record.score > 1'`);
    expect(placed('update', 1)).toMatch(/^>-\n.*and @record\.score = 1$/s);
  });

  test('a condition is checked as one of its rule: with roles, and of a member', () => {
    const catalog = writeCatalog(parseSchema(FORMS).schema!, () => []);
    const codes = (place: Partial<ToolPlace>) =>
      issuesOf('@record.score > 1', { catalog, collection: 'posts', action: 'update', ...place }).map(
        ({ code }) => code,
      );
    expect([codes({}), codes({ roles: ['editor'] }), codes({ isOfMember: true })]).toEqual([['no_caller'], [], []]);
  });

  test('a broken text and rules by reference are not written', () => {
    expect(withRule('collections: [', of('posts', 'access', 'read'), RULE)).toBeUndefined();
    const alias = 'collections:\n  a: { access: { read: &rules true, list: *rules } }\n';
    expect(withRule(alias, of('a', 'access', 'list'), RULE)).toBeUndefined();
    expect(withRule('collections: 7', of('a', 'access', 'list'), RULE)).toBeUndefined();
  });
});
