import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { judgeRounds } from '../../bench/support/measure.ts';

let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
  process.exitCode = undefined;
  vi.spyOn(console, 'log').mockReturnValue(undefined);
});
afterEach(() => {
  process.exitCode = exitCode;
  vi.restoreAllMocks();
});

type Limit = { readonly atLeast: number } | { readonly atMost: number };
const values = [9, 1, 5, 3, 7];

test.each<[name: string, question: Limit, line: string, exitCode: number | undefined]>([
  ['the median holds a least', { atLeast: 5 }, 'held   figure 5.00 (at least 5)', undefined],
  ['the better quarter alone holds a least', { atLeast: 7 }, 'unsure figure 5.00 (at least 7)', undefined],
  ['only one round holds a least', { atLeast: 8 }, 'MISSED figure 5.00 (at least 8)', 1],
  ['the median holds a most', { atMost: 5 }, 'held   figure 5.00 (at most 5)', undefined],
  ['the better quarter alone holds a most', { atMost: 3 }, 'unsure figure 5.00 (at most 3)', undefined],
  ['only one round holds a most', { atMost: 2 }, 'MISSED figure 5.00 (at most 2)', 1],
])('%s', (_name, question, line, expected) => {
  expect(judgeRounds({ label: 'figure', values, ...question })).toBe(line);
  expect(console.log).toHaveBeenCalledWith(`  ${line}`);
  expect(process.exitCode).toBe(expected);
});

test('a single round decides', () => {
  expect(judgeRounds({ label: 'figure', values: [4], atMost: 4 })).toMatch(/^held/);
  expect(judgeRounds({ label: 'figure', values: [4], atMost: 3 })).toMatch(/^MISSED/);
});
