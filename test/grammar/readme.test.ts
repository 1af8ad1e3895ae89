import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMPARE_OPS } from '../../grammar/tokens.ts';
import { examine } from '../../src/policy/check/checker.ts';
import { OPERATORS } from '../../src/policy/operators.ts';
import type { Action } from '../../src/policy/types.ts';
import { SAMPLE } from '../policy/sample-catalog.ts';

const README = new URL('../../grammar/README.md', import.meta.url);
const text = readFileSync(README, 'utf8');

// A pipe would end the cell of a table.
const cell = (content: string): string => content.replaceAll('|', '\\|');

const HEAD = ['operator', 'true when', 'where something is absent', 'for example'];

/** Padded as the formatter pads, so that neither undoes the other. */
function operatorTable(): string {
  const rows = Object.values(OPERATORS).map(({ symbol, doc, nullMeaning, examples }) =>
    [`\`${symbol}\``, doc, nullMeaning, examples.map((example) => `\`${example}\``).join(' · ')].map(cell),
  );
  const widths = HEAD.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.map((content, i) => content.padEnd(widths[i]!)).join(' | ')} |`;
  return [line(HEAD), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

const context = (action: Action, collection = 'documents') => ({ catalog: SAMPLE, collection, action });

describe('the reference for authors', () => {
  it('has the operators of the table; `npx vitest run test/grammar/readme.test.ts -u` brings it up to date', async () => {
    const generated = text.replace(
      /(<!-- operators -->\n)[\s\S]*(<!-- \/operators -->)/,
      (_, open: string, close: string) => `${open}${operatorTable()}\n${close}`,
    );
    await expect(generated).toMatchFileSnapshot('../../grammar/README.md');
  });

  it('knows every operator of the grammar', () => {
    expect(Object.keys(OPERATORS).sort()).toEqual([...COMPARE_OPS].sort());
  });

  it.each(Object.values(OPERATORS).flatMap(({ symbol, examples }) => examples.map((example) => [symbol, example])))(
    'has an example of %s that compiles: %s',
    (symbol, example) => {
      const { checked, issues } = examine(example, context('list'));
      expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
      expect(checked).toBeDefined();
      expect(example).toContain(` ${symbol} `);
    },
  );

  const examples = [...text.matchAll(/```policy (\w+)(?: of:(\w+))?(?: (warns|error):(\w+))?\n([\s\S]*?)\n```/g)].map(
    ([, action, collection, severity, code, policy]) => ({
      action: action as Action,
      collection,
      severity,
      code,
      policy: policy!,
    }),
  );

  it('has examples, and every fence is one', () => {
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
