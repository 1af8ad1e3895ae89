// @module-tag long
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPolicies } from '../../src/schema/file/format-policies.ts';
import { underlineIssue } from '../../src/schema/file/issue.ts';
import { parseSchema } from '../../src/schema/load.ts';

const SAMPLE = readFileSync(new URL('language.yaml', import.meta.url), 'utf8');
const PIECES = [
  "'",
  '"',
  '{',
  '}',
  '[',
  ']',
  ':',
  ' #',
  '@',
  '!',
  '&a ',
  '*a',
  '\n',
  '\n  ',
  '|',
  '>-',
  '__proto__',
  'null',
  '5',
  '~',
  '\t',
  '- ',
  '? ',
  '😀',
  '\r\n',
  '---\n',
  '<<',
  '/*',
];

/** The sample, damaged: a piece put in, or a stretch taken out. */
const damaged = fc
  .array(
    fc.record({
      at: fc.nat(SAMPLE.length),
      cut: fc.constantFrom(0, 0, 1, 3, 40),
      piece: fc.constantFrom('', ...PIECES),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((harms) => harms.reduce((text, { at, cut, piece }) => text.slice(0, at) + piece + text.slice(at + cut), SAMPLE));

describe('arbitrary files', () => {
  it('the loader gives a schema, or errors with places in the file', () => {
    let faulty = 0;
    fc.assert(
      fc.property(damaged, (text) => {
        const { schema, issues } = parseSchema(text, 'x.yaml');
        const errors = issues.filter(({ severity }) => severity === 'error');
        expect(schema === undefined).toBe(errors.length > 0);
        if (errors.length > 0) faulty++;
        const lines = text.split('\n');
        for (const issue of issues) {
          expect(issue.line).toBeGreaterThan(0);
          expect(issue.line).toBeLessThanOrEqual(lines.length);
          expect(issue.column).toBeGreaterThan(0);
          expect(issue.column).toBeLessThanOrEqual(lines[issue.line - 1]!.length + 1);
          const ends =
            issue.end_line > issue.line || (issue.end_line === issue.line && issue.end_column >= issue.column);
          expect(ends).toBe(true);
          expect(underlineIssue(text, issue)).toContain('^');
        }
        expect(formatPolicies(text).text.length).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
    expect(faulty).toBeGreaterThan(100);
  });
});
