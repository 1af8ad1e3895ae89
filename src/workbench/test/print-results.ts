/** Results as lines of text: for each failure its place, the clause that decided underlined, and the value of each leaf. */
import { type Clause, decidingOf } from '../../policy/analyse/explanation.ts';
import { type Expected, titleOf } from './expectation.ts';
import type { CheckJudgement, Judgement, RuleJudgement } from './predicate.ts';
import type { Actual, TestResult } from './test-result.ts';
import type { RowNames } from './test-rows.ts';

export interface FileResults {
  readonly file: string;
  readonly names: RowNames;
  readonly results: readonly TestResult[];
}

export function printResults(files: readonly FileResults[]): string {
  const failures = files.flatMap(({ file, names, results }) =>
    results.filter((result) => !result.isOk || result.isDisagreement).map((result) => failureText(result, file, names)),
  );
  const all = files.flatMap(({ results }) => results);
  const failed = all.filter(({ isOk }) => !isOk).length;
  return [...failures, `${all.length - failed} passed, ${failed} failed\n`].join('\n');
}

function failureText(result: TestResult, file: string, names: RowNames): string {
  const { expectation, judgement, differing, actual } = result;
  const { line, column } = expectation.region;
  const place = `${file}:${line}:${column}`;
  const wanted = `expected ${expectedText(expectation.expected)}, found ${actualText(actual)}`;
  const lines = [
    `${result.isOk ? 'ok  ' : 'FAIL'} ${place}  ${titleOf(expectation)}: ${wanted}`,
    ...(result.isDisagreement ? disagreementLines(result) : []),
    ...(judgement === undefined ? [] : judgementLines(judgement)),
    ...differing.flatMap((row) => [
      `  ${row.name} is ${row.isMissing ? 'missing' : 'too many'}`,
      ...judgementLines(row.judgement),
    ]),
  ];
  return `${names.readable(lines.join('\n'))}\n`;
}

/** The program promises one meaning, so the author of the tests is not at fault. */
const disagreementLines = ({ judgement, actual }: TestResult): readonly string[] => [
  '  DEFECT of bylaw: its predicate and its SQL disagree. Please report the schema, this file and these lines.',
  `  predicate: ${judgement === undefined ? 'other rows' : judgement.isAllowed ? 'allowed' : 'denied'}; SQL: ${actualText(actual)}`,
];

export function expectedText(expected: Expected): string {
  if (expected.kind === 'names') return `[${expected.names.join(', ')}]`;
  return expected.kind === 'status' ? String(expected.status) : expected.kind;
}

export function actualText(actual: Actual): string {
  if (actual.kind === 'names') return `[${actual.names.join(', ')}]`;
  if (actual.kind === 'shown') return actual.isShown ? 'yes, the field is shown' : 'no, the field is left out';
  const { status, detail } = actual;
  if (status < 300) return `yes (${status})`;
  return status === 403 || status === 404 ? `no (${status})` : `${status}: ${detail}`;
}

function judgementLines({ rules, members, failed, isAllowed }: Judgement): readonly string[] {
  if (isAllowed === undefined) return [];
  if (rules.length === 0) return ['  the action has no rule, so it is denied'];
  const ofRules = [rules, ...members].flatMap((all) =>
    all.length === 0
      ? ['  the field has no rule, so it is denied']
      : all.flatMap((rule, i) => judgedRuleLines(rule, i)),
  );
  return [...ofRules, ...failed.flatMap(failedCheckLines)];
}

const failedCheckLines = ({ name, violation: { rule, clauses } }: CheckJudgement): readonly string[] => [
  `  check ${name}: fails`,
  ...rule.source.split('\n').map((line) => `    | ${line}`),
  ...clauses.flatMap((clause) => leafLines(clause)),
];

function judgedRuleLines({ rule, clauses, isAllowed }: RuleJudgement, index: number): readonly string[] {
  return clauses.flatMap((clause, i) => {
    const of = clauses.length === 1 ? '' : i === 0 ? ', stored record' : ', written record';
    return [
      `  rule ${index + 1}${of}: ${isAllowed ? 'allows' : 'does not allow'}`,
      ...underlined(rule.source, decidingOf(clause)).map((line) => `    ${line}`),
      ...leafLines(clause),
    ];
  });
}

/** Each line of the policy that the clause is in, with a caret under each of its characters. */
function underlined(source: string, clause: Clause): readonly string[] {
  const { offset, text } = clause;
  if (offset === undefined) return [...source.split('\n').map((line) => `| ${line}`), `  ${text} (of a condition)`];
  let start = 0;
  return source.split('\n').flatMap((line) => {
    const from = Math.max(offset - start, line.length - line.trimStart().length);
    const to = Math.min(offset + text.length - start, line.length);
    start += line.length + 1;
    return to > from ? [`| ${line}`, `| ${' '.repeat(from)}${'^'.repeat(to - from)}`] : [`| ${line}`];
  });
}

function leafLines(clause: Clause, within?: string): readonly string[] {
  const element = clause.element ?? within;
  if (clause.parts.length > 0) return clause.parts.flatMap((part) => leafLines(part, element));
  const { text, value, absent, sides } = clause;
  const word = value === undefined ? 'unknown' : String(value);
  const of = element === undefined ? '' : `[${element}] `;
  const values = sides === undefined ? '' : `  ${valueText(sides.left)}, ${valueText(sides.right)}`;
  const why = absent === undefined ? '' : `  (${absent})`;
  return [`    ${word.padEnd(7)} ${of}${text.replaceAll(/\s+/g, ' ')}${absent === undefined ? values : why}`];
}

const valueText = (value: unknown): string => (value === undefined ? 'null' : JSON.stringify(value));
