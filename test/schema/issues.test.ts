// @module-tag long
import { describe, expect, it } from 'vitest';
import { lineAndColumn } from '../../grammar/policy-error.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { DISTRIBUTION_CASES } from './distribution-cases.ts';
import { ISSUE_CASES } from './issue-cases.ts';

const CASES = [...ISSUE_CASES, ...DISTRIBUTION_CASES];

/** `line:column` of each marker in the text without markers. */
function marked(text: string): { readonly text: string; readonly places: readonly string[] } {
  const parts = text.split('⟦');
  const plain = parts.join('');
  const offsets = parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join('').length);
  return {
    text: plain,
    places: offsets.map((offset) => lineAndColumn(plain, offset)).map(({ line, column }) => `${line}:${column}`),
  };
}

describe('a faulty schema file', () => {
  it.each(CASES.map((issue) => [issue.about, issue] as const))('%s', (_, { text: source, codes, says }) => {
    const { text, places } = marked(source);
    const { issues } = parseSchema(text, 'x.yaml');
    expect(issues.map(({ code, line, column }) => `${code} ${line}:${column}`)).toEqual(
      codes.map((code, i) => `${code} ${places[i]}`),
    );
    if (says !== undefined) expect(issues.map(({ message }) => message).join('\n')).toContain(says);
  });

  it('a file with an error gives no schema, one with a warning does', () => {
    const outcomes = CASES.map(({ text, about }) => {
      const { schema, issues } = parseSchema(marked(text).text, 'x.yaml');
      const failed = issues.some(({ severity }) => severity === 'error');
      return [about, failed, schema === undefined] as const;
    });
    expect(outcomes.filter(([, failed, none]) => failed !== none)).toEqual([]);
    expect(outcomes.filter(([, failed]) => !failed).map(([about]) => about)).toEqual([
      'a key with a condition that an index can have',
      'a rule that compares a field that every record has',
      'a message that reaches no caller',
      'a check that always fails',
      'a check that reads a hidden value',
      'nothing but a comment',
      'a collection in upper case',
      'a field whose name is a word of the language',
      'an index on long texts',
      'a rule that another one makes idle',
      'unique values that one machine can keep',
      'a key with the tenant',
      'relations that stay with their tenant, and to reference collections',
      'a rule that never holds',
      'two rules of one tenant among several',
      'rules of any tenant where lists are filtered',
      'a tenant that users choose and the rules check',
      'a tenant that no one can set, with a default',
      'a value of the request that is compared with a reference',
    ]);
  });
});

/** The file with every fix applied, the last first. */
function fixed(text: string): string {
  const lines = text.split('\n');
  for (const { fix } of parseSchema(text).issues.toReversed()) {
    if (fix === undefined) continue;
    const line = lines[fix.line - 1]!;
    lines[fix.line - 1] = line.slice(0, fix.column - 1) + fix.replacement + line.slice(fix.end_column - 1);
  }
  return lines.join('\n');
}

it.each(['text', 'boolean', 'timestamp', 'admin', 'public', 'authenticated', 'owner', '[admin, public]'])(
  'the fix for %s is valid',
  (word) => {
    const isType = ['text', 'boolean', 'timestamp'].includes(word);
    const text = `collections:
  a:
    fields: { f: ${isType ? word : 'string'} }
    relations: { owner: { kind: belongs_to, collection: users } }
    access: { list: ${isType ? 'true' : word} }
`;
    const errors = (of: string) => parseSchema(of).issues.filter(({ severity }) => severity === 'error').length;
    expect([errors(text) > 0, errors(fixed(text))]).toEqual([true, 0]);
  },
);
