/** Results as the document of `bylaw test --json`, and as JUnit's XML. */

import { clausesDocument } from '../../explain/trace-document.ts';
import type { CoverageDocument } from '../coverage/coverage.ts';
import type { Mutant } from '../mutate/mutate.ts';
import { type Expected, titleOf } from './expectation.ts';
import type { Judgement } from './predicate.ts';
import { actualText, expectedText, type FileResults } from './print-results.ts';
import type { Actual, TestResult } from './test-result.ts';
import type { RowNames } from './test-rows.ts';

export interface ResultsDocument {
  readonly passed: number;
  readonly failed: number;
  readonly tests: readonly TestDocument[];
  readonly coverage?: CoverageDocument;
  readonly mutants?: readonly Mutant[];
}
interface TestDocument {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly collection: string;
  readonly record: string | null;
  readonly action: string;
  /** Given for a field with rules of its own. */
  readonly field?: string;
  readonly as: string;
  /** The names of a list; `yes` and `no` are booleans, a status is a number. */
  readonly expected: ExpectedDocument;
  readonly actual: ExpectedDocument;
  readonly ok: boolean;
  /** The predicate and the SQL of a rule disagree. */
  readonly disagreement?: true;
  readonly trace: readonly RuleTraceDocument[];
  /** Given where the written record fails some. */
  readonly failed_checks?: readonly string[];
}
type ExpectedDocument = boolean | number | readonly string[];

export function resultsDocument(files: readonly FileResults[]): ResultsDocument {
  const tests = files.flatMap(({ file, names, results }) => results.map((each) => testDocument(each, file, names)));
  const failed = tests.filter(({ ok }) => !ok).length;
  return { passed: tests.length - failed, failed, tests };
}

function testDocument(result: TestResult, file: string, names: RowNames): TestDocument {
  const { expectation, actual, isOk, judgement, isDisagreement } = result;
  const { region, collection, record = null, action, as, field } = expectation;
  return {
    file,
    line: region.line,
    column: region.column,
    collection: collection.name,
    record,
    action,
    ...(field !== undefined && { field }),
    as,
    expected: expectedValue(expectation.expected),
    actual: actualValue(actual),
    ok: isOk,
    ...(isDisagreement && { disagreement: true as const }),
    ...(judgement !== undefined &&
      judgement.failed.length > 0 && { failed_checks: judgement.failed.map((check) => check.name) }),
    trace: judgement === undefined ? [] : (JSON.parse(names.readable(JSON.stringify(traceOfRules(judgement)))) as []),
  };
}

function expectedValue(expected: Expected): ExpectedDocument {
  if (expected.kind === 'names') return expected.names;
  return expected.kind === 'status' ? expected.status : expected.kind === 'yes';
}

function actualValue(actual: Actual): ExpectedDocument {
  if (actual.kind === 'names') return actual.names;
  return actual.kind === 'shown' ? actual.isShown : actual.status;
}

type RuleTraceDocument = ReturnType<typeof traceOfRules>[number];

const traceOfRules = ({ rules, members }: Judgement) =>
  [rules, ...members].flat().map(({ rule, clauses, isAllowed }) => ({
    roles: rule.parts.roles,
    when: rule.parts.when ?? null,
    allowed: isAllowed,
    ...clausesDocument(clauses),
  }));

export function junitOf(files: readonly FileResults[]): string {
  const suites = files.map(({ file, results }) => {
    const failures = results.filter(({ isOk }) => !isOk).length;
    const cases = results.map((result) => junitCase(result, file));
    return `  <testsuite name="${escapedXml(file)}" tests="${results.length}" failures="${failures}">\n${cases.join('')}  </testsuite>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`;
}

function junitCase({ expectation, actual, isOk }: TestResult, file: string): string {
  const { line, column } = expectation.region;
  const name = escapedXml(`${titleOf(expectation)} (${line}:${column})`);
  const open = `    <testcase name="${name}" classname="${escapedXml(file)}"`;
  if (isOk) return `${open}/>\n`;
  const message = escapedXml(`expected ${expectedText(expectation.expected)}, found ${actualText(actual)}`);
  return `${open}>\n      <failure message="${message}">${escapedXml(`${file}:${line}:${column}`)}</failure>\n    </testcase>\n`;
}

/** XML 1.0 has no control characters but these. */
const escapedXml = (text: string): string =>
  text
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, ' ')
    .replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
