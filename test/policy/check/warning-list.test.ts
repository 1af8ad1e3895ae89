import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { examine } from '../../../src/policy/check/checker.ts';
import { WARNING_DOCS } from '../../../src/policy/check/warnings/warning-list.ts';
import { SAMPLE } from '../sample-catalog.ts';

const PAGE = readFileSync(new URL('../../../docs/warnings.md', import.meta.url), 'utf8');
const ADVICE = ['guessable-values', 'privilege-escalation', 'public-references', 'read-access', 'self-made-evidence'];

it.each(Object.entries(WARNING_DOCS))(
  'the example of %s has the warning',
  (code, { example, action = 'list', guests }) => {
    const { checked, issues } = examine(example, { catalog: { ...SAMPLE, guests }, collection: 'documents', action });
    expect(checked).toBeDefined();
    expect(issues.map((issue) => issue.code)).toContain(code);
  },
);

it('the page of warnings names every warning about rules', () => {
  const sources = ADVICE.map((file) =>
    readFileSync(new URL(`../../../src/schema/advice/${file}.ts`, import.meta.url), 'utf8'),
  ).join('\n');
  const codes = [...sources.matchAll(/code: '(\w+)',\s+severity: (?:'warning'|isTenant)/g)].map(([, code]) => code!);
  expect(codes.length).toBeGreaterThan(6);
  expect([...codes, ...Object.keys(WARNING_DOCS)].filter((code) => !PAGE.includes(`| \`${code}\` |`))).toEqual([]);
});
