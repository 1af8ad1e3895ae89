import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FACT_PATHS, PATH_ROOTS } from '../../grammar/read-tokens.ts';
import { CHANGE_CALLS, COMPARE_OPS, NOW_WORDS, SPELLINGS, WITHIN } from '../../grammar/tokens.ts';
import { CONNECTIVE_NOTES, FUNCTION_NOTES, OPERATOR_NOTES } from '../../scripts/docs/word-notes.ts';
import { examine } from '../../src/policy/check/checker.ts';
import { OPERATORS } from '../../src/policy/operators.ts';
import type { Action } from '../../src/policy/types.ts';
import { CONNECTIVES, FUNCTIONS, ROOT_DOCS } from '../../src/policy/words.ts';
import { SAMPLE } from '../policy/sample-catalog.ts';

const README = new URL('../../grammar/README.md', import.meta.url);
const text = readFileSync(README, 'utf8');

const context = (action: Action, collection = 'documents') => ({ catalog: SAMPLE, collection, action });

describe('the reference for authors', () => {
  it('the reference knows every operator, word, function and name of the grammar', () => {
    expect(Object.keys(OPERATORS).sort()).toEqual([...COMPARE_OPS, WITHIN].sort());
    const parts = ['as', 'by', 'true', 'false', ...NOW_WORDS];
    const words = [...SPELLINGS.values()].flat().filter((text) => /[a-z<=>]/.test(text) && !parts.includes(text));
    const known = [OPERATORS, CONNECTIVES, FUNCTIONS].flatMap((table) => Object.keys(table));
    expect(known.sort()).toEqual([...words, ...CHANGE_CALLS, WITHIN].sort());
    expect(Object.keys(ROOT_DOCS).sort()).toEqual([...PATH_ROOTS, ...FACT_PATHS, ...NOW_WORDS].sort());
  });

  it.each(
    Object.entries(OPERATOR_NOTES).flatMap(([symbol, { examples }]) => examples.map((example) => [symbol, example])),
  )('the example of %s compiles: %s', (symbol, example) => {
    const { checked, issues } = examine(example, context('list'));
    expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(checked).toBeDefined();
    expect(example).toContain(symbol === WITHIN ? `${symbol}(` : ` ${symbol} `);
  });

  const actionOf = (name: string): Action => FUNCTIONS[name as keyof typeof FUNCTIONS]?.action ?? 'list';
  const words = Object.entries({ ...CONNECTIVE_NOTES, ...FUNCTION_NOTES }).flatMap(([name, { examples }]) =>
    examples.map((example) => ({ name, example, action: actionOf(name) })),
  );
  it.each(words)('the example of $name compiles without a warning: $example', ({ name, example, action }) => {
    expect(examine(example, context(action)).issues).toEqual([]);
    expect(example).toMatch(new RegExp(`\\b${name}\\b`));
    if (action === 'update') expect(examine(example, context('list')).checked).toBeUndefined();
  });

  it.each(Object.entries(ROOT_DOCS))('the reference spells %s correctly', (root, { forms }) => {
    for (const form of forms) {
      expect(form.startsWith(root)).toBe(true);
      const { issues } = examine(`@request.query.value = ${form}`, context('update'));
      const expected = ['name_unknown', 'type_mismatch', 'query_decides', 'no_caller', 'next_alone'];
      expect(issues.filter(({ code }) => !expected.includes(code))).toEqual([]);
    }
  });

  const examples = [...text.matchAll(/```policy (\w+)(?: of:(\w+))?(?: (warns|error):(\w+))?\n([\s\S]*?)\n```/g)].map(
    ([, action, collection, severity, code, policy]) => ({
      action: action as Action,
      collection,
      severity,
      code,
      policy: policy!,
    }),
  );

  it('every fence of the reference is an example', () => {
    expect(examples.length).toBeGreaterThan(20);
    expect(text.match(/```/g)).toHaveLength(examples.length * 2);
  });

  it.each(examples)('$action: $policy', ({ action, collection, severity, code, policy }) => {
    const { checked, issues } = examine(policy, context(action, collection));
    const expected = code === undefined ? [] : [[severity === 'warns' ? 'warning' : 'error', code]];
    expect(issues.map((issue) => [issue.severity, issue.code])).toEqual(expected);
    expect(checked === undefined).toBe(severity === 'error');
  });
});
