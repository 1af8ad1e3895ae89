import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatPolicies } from '../../src/schema/file/format-policies.ts';

const BEFORE = `# a comment
collections:   # here
  posts:
    fields: {a: int,   b:  string}
    access:
      list: (@record.a=1)&&@record.b   =  'x'
      read: '!(@record.a = 1)'   # stays
      create: "@record.b='its'"
      update: |
        @record.a=1
          && @record.b = "x  y"

      delete:
      - {when: '@record.a=1'}   # c
      - when: >-
          @record.a = 1 or
          @record.b = "x"
      - when: '@record.a=1 /* why */'
      - when: true
`;
const AFTER = `# a comment
collections:   # here
  posts:
    fields: {a: int,   b:  string}
    access:
      list: '@record.a = 1 and @record.b = "x"'
      read: 'not @record.a = 1'   # stays
      create: '@record.b = "its"'
      update: |
        @record.a = 1 and @record.b = "x  y"

      delete:
      - {when: '@record.a = 1'}   # c
      - when: >-
          @record.a = 1 or
          @record.b = "x"
      - when: '@record.a = 1 /* why */'
      - when: true
`;

describe('formatting', () => {
  it('the formatter rewrites only policies', () => {
    expect(formatPolicies(BEFORE)).toEqual({
      text: AFTER,
      changed: ['list', 'read', 'create', 'update', 'delete[0].when', 'delete[2].when'].map(
        (at) => `collections.posts.access.${at}`,
      ),
      issues: [],
    });
  });

  it('a second run changes no text, and line ends stay', () => {
    expect(formatPolicies(AFTER)).toEqual({ text: AFTER, changed: [], issues: [] });
    const windows = (text: string) => text.replaceAll('\n', '\r\n');
    expect(formatPolicies(windows(BEFORE)).text).toBe(windows(AFTER));
  });

  it('the formatter leaves the sample unchanged', () => {
    const text = readFileSync('bylaw.yaml', 'utf8');
    expect(formatPolicies(text)).toEqual({ text, changed: [], issues: [] });
  });

  it('comments of policies stay in their places', () => {
    const of = (list: string) => `collections:\n  a:\n    access:\n      list: ${list}\n`;
    expect(formatPolicies(of("'1==1/* always */'")).issues).toHaveLength(1);
    expect(formatPolicies(of("'1=1/* always */&&true'")).text).toBe(of("'1 = 1 /* always */ and true'"));
    const lost = of("'(1=1)/* of what? */&&true'");
    expect(formatPolicies(lost)).toEqual({ text: lost, changed: [], issues: [] });
  });

  it('an unreadable policy leaves the file unchanged', () => {
    const text = "collections:\n  a:\n    access:\n      list: '1=1 and'\n      read: 'true&&true'\n";
    const { text: after, changed, issues } = formatPolicies(text);
    expect([after, changed, issues.map(({ line, severity }) => [line, severity])]).toEqual([text, [], [[4, 'error']]]);
  });
});
