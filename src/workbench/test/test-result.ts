/** The result of an expectation: what its rules say, and what a database, or a page without one, found. Runs without Node. */
import type { PolicyRequest } from '../../policy/types.ts';
import { own } from '../../policy/values.ts';
import type { DatabaseOutcome } from './database-outcome.ts';
import type { Expectation } from './expectation.ts';
import type { Judgement, PredicateJudge } from './predicate.ts';
import type { PolicyTests } from './read-tests.ts';

export interface TestResult {
  readonly expectation: Expectation;
  readonly actual: Actual;
  readonly isOk: boolean;
  /** Undefined for a list as a whole. */
  readonly judgement: Judgement | undefined;
  /** For a list: the rows that are missing, or too many, and why. */
  readonly differing: readonly DifferingRow[];
  /** The predicates and the database decided differently: a defect of this program. */
  readonly isDisagreement: boolean;
}
export type Actual =
  | { readonly kind: 'status'; readonly status: number; readonly detail?: string | undefined }
  /** A field that a read shows, or leaves out. */
  | { readonly kind: 'shown'; readonly isShown: boolean }
  | { readonly kind: 'names'; readonly names: readonly string[] };

interface DifferingRow {
  readonly name: string;
  readonly isMissing: boolean;
  readonly judgement: Judgement;
}

interface OutcomeSource {
  of(expectation: Expectation, request: PolicyRequest): Promise<DatabaseOutcome>;
}

export interface RunningTests {
  readonly judge: PredicateJudge;
  readonly outcomes: OutcomeSource;
  readonly names: PolicyTests['names'];
}

export async function testResult(expectation: Expectation, run: RunningTests): Promise<TestResult> {
  const { judge, outcomes } = run;
  const outcome = await outcomes.of(expectation, judge.requestOf(expectation));
  if (expectation.action === 'list' && expectation.record === undefined) return listResult(expectation, outcome, run);
  const judgement = judge.judge(expectation);
  const actual = actualOf(expectation, outcome, run);
  const isAllowed = isAllowedBy(actual);
  return {
    expectation,
    actual,
    isOk: isExpected(expectation, actual),
    judgement,
    differing: [],
    isDisagreement:
      (isDecidedResult(actual) && judgement.isAllowed !== undefined && isAllowed !== judgement.isAllowed) ||
      !isSameOfChecks(expectation, judgement, outcome),
  };
}

/** A write that sets a has_one is held to the checks of its partner too, which the predicates do not see. */
function isSameOfChecks(
  { collection, data = {} }: Expectation,
  { isAllowed, failed }: Judgement,
  outcome: DatabaseOutcome,
): boolean {
  const { failed: found = [], status } = outcome;
  const movesPartner = Object.keys(data).some((name) => collection.relations.get(name)?.kind === 'has_one');
  if (movesPartner || (found.length === 0 && status >= 300)) return true;
  if (isAllowed !== true) return found.length === 0;
  return failed.map(({ name }) => name).join() === found.join();
}

function listResult(expectation: Expectation, outcome: DatabaseOutcome, { judge, names }: RunningTests): TestResult {
  const { collection, expected } = expectation;
  const all = names.of(collection.name);
  const listed = judge.listed(expectation, all);
  const isOk = (actual: Actual) => isExpected(expectation, actual);
  if (outcome.ids === undefined) {
    const actual: Actual = { kind: 'status', status: outcome.status, detail: outcome.detail };
    const shared = { expectation, actual, judgement: undefined, differing: [] };
    return { ...shared, isOk: isOk(actual), isDisagreement: listed.length > 0 };
  }
  const found = outcome.ids.map((id) => names.nameOf(collection.name, id) ?? id).toSorted();
  const actual: Actual = { kind: 'names', names: found };
  const wanted = expected.kind === 'names' ? expected.names : found;
  const differing = all
    .filter((name) => wanted.includes(name) !== found.includes(name))
    .map((name) => ({
      name,
      isMissing: !found.includes(name),
      judgement: judge.judge({ ...expectation, record: name }),
    }));
  const isDisagreement = !isSameSet(listed, found);
  return { expectation, actual, isOk: isOk(actual), judgement: undefined, differing, isDisagreement };
}

function actualOf(
  { action, collection, record, field }: Expectation,
  outcome: DatabaseOutcome,
  { names }: Pick<RunningTests, 'names'>,
): Actual {
  const { status, ids, detail } = outcome;
  if (field !== undefined && outcome.record !== undefined)
    return { kind: 'shown', isShown: own(outcome.record, field) !== undefined };
  if (action !== 'list' || ids === undefined) return { kind: 'status', status, detail };
  // A list leaves out what it refuses.
  return { kind: 'status', status: ids.includes(names.idOf(collection.name, record!)!) ? 200 : 404 };
}

/** The rules decided, and nothing else: neither the data nor what the database holds. */
const isDecidedResult = (actual: Actual): boolean =>
  actual.kind !== 'status' || actual.status < 300 || actual.status === 403 || actual.status === 404;

const isAllowedBy = (actual: Actual): boolean =>
  actual.kind === 'shown' ? actual.isShown : actual.kind === 'names' || actual.status < 300;

/** The outcome of a request, or of a row in a list, is the expected one. */
export const isMet = (expectation: Expectation, outcome: DatabaseOutcome, of: Pick<RunningTests, 'names'>): boolean =>
  isExpected(expectation, actualOf(expectation, outcome, of));

function isExpected({ expected }: Expectation, actual: Actual): boolean {
  switch (expected.kind) {
    case 'yes':
      return isAllowedBy(actual);
    case 'no':
      return isDecidedResult(actual) && !isAllowedBy(actual);
    case 'status':
      return actual.kind === 'status' && actual.status === expected.status;
    case 'names':
      return actual.kind === 'names' && isSameSet(expected.names, actual.names);
  }
}

const isSameSet = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === others.length && some.every((each) => others.includes(each));
