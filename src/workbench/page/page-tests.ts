/**
 * Policy tests in a page, decided by the predicates alone. A chunk of its own, with the reader of schemas: the studio
 * imports nothing else of this room.
 */
import '../../schema/jitless.ts';
import type { SchemaIssue } from '../../schema/file/issue.ts';
import { parseSchema } from '../../schema/load.ts';
import type { Schema } from '../../schema/model/model.ts';
import { CoverageCounter } from '../coverage/coverage.ts';
import { type Mutant, mutantsOf } from '../mutate/mutate.ts';
import type { TestedWorld } from '../mutate/telling-test.ts';
import { type PlacedRule, placedRules } from '../rule-places.ts';
import type { Expectation } from '../test/expectation.ts';
import { PredicateJudge } from '../test/predicate.ts';
import type { FileResults } from '../test/print-results.ts';
import { type PolicyTests, readTests } from '../test/read-tests.ts';
import { type ResultsDocument, resultsDocument } from '../test/results-document.ts';
import { type TestResult, testResult } from '../test/test-result.ts';
import { TestWorld } from '../test/test-world.ts';
import { closedSchema } from './closed-schema.ts';
import { PredictedOutcomes } from './predicted-outcome.ts';

interface FileIssue extends Pick<SchemaIssue, 'line' | 'message'> {
  readonly file: string;
}
interface PageResults extends ResultsDocument {
  /** Expectations that only a database decides: those of a conflict. */
  readonly undecided: number;
}
/** The document of `bylaw test --json`, or the errors of the texts. */
export type PageRun = { readonly results: PageResults } | { readonly issues: readonly FileIssue[] };

interface PageTests {
  /** The text of bylaw.yaml. */
  readonly text: string;
  /** Texts of policy tests by name. */
  readonly files: Readonly<Record<string, string>>;
  readonly mutate: boolean;
}

export async function runInPage({ text, files, mutate }: PageTests): Promise<PageRun> {
  const loaded = parseSchema(text, SCHEMA_FILE, ANY_ENVIRONMENT);
  if (loaded.schema === undefined) return { issues: issuesIn(SCHEMA_FILE, loaded.issues) };
  const schema = closedSchema(loaded.schema);
  const read = Object.entries(files).map(([file, each]) => ({ file, text: each, ...readTests(each, file, schema) }));
  const issues = read.flatMap(({ file, issues }) => issuesIn(file, issues));
  if (issues.length > 0) return { issues };
  const counter = new CoverageCounter();
  const all: FileResults[] = [];
  const worlds: TestedWorld[] = [];
  for (const { file, text, tests } of read) {
    const world = TestWorld.ofFile(schema, tests!);
    all.push({ file, names: tests!.names, results: await resultsOf(tests!, { schema, world, counter }) });
    worlds.push({ tests: tests!, world, text });
  }
  const undecided = read.flatMap(({ tests }) => tests!.expectations).filter(isOfDatabase).length;
  const rules = placedRules(schema, text);
  const coverage = counter.report(rules, { file: SCHEMA_FILE, catalog: schema });
  const mutants = mutate ? await mutantsInTurns(rules, { schema, worlds }) : undefined;
  return { results: { ...resultsDocument(all), undecided, coverage, ...(mutants && { mutants }) } };
}

const CONFLICT = 409;
const isOfDatabase = ({ expected }: Expectation): boolean => expected.kind === 'status' && expected.status === CONFLICT;

const SCHEMA_FILE = 'bylaw.yaml';

/** The page has none of the secrets that the schema names; no rule depends on them. */
const MADE_UP_SECRET = `whsec_${'A'.repeat(43)}=`;
const ANY_ENVIRONMENT = new Proxy<Readonly<Record<string, string>>>({}, { get: () => MADE_UP_SECRET });

const issuesIn = (file: string, issues: readonly SchemaIssue[]): readonly FileIssue[] =>
  issues.filter(({ severity }) => severity === 'error').map(({ line, message }) => ({ file, line, message }));

interface RunPlace {
  readonly schema: Schema;
  readonly world: TestWorld;
  readonly counter: CoverageCounter;
}

async function resultsOf(tests: PolicyTests, { schema, world, counter }: RunPlace): Promise<readonly TestResult[]> {
  const { names, now, expectations } = tests;
  const place = { schema, world, now };
  const judge = new PredicateJudge({
    ...place,
    onValue: (node, value) => counter.count(node, value),
    onRules: (judged) => counter.countRules(judged),
  });
  // A judge of its own: the coverage counts each decision once.
  const outcomes = new PredictedOutcomes(new PredicateJudge(place), names);
  const decided = expectations.filter((each) => !isOfDatabase(each));
  return Promise.all(decided.map((each) => testResult(each, { judge, outcomes, names })));
}

/** A rule at a time, so that the page stays alive meanwhile. */
async function mutantsInTurns(
  rules: readonly PlacedRule[],
  { schema, worlds }: { readonly schema: Schema; readonly worlds: readonly TestedWorld[] },
): Promise<readonly Mutant[]> {
  const mutants: Mutant[] = [];
  for (const rule of rules) {
    await new Promise((done) => setTimeout(done));
    const fill = (tests: PolicyTests): TestWorld => TestWorld.ofFile(schema, tests);
    mutants.push(...(await mutantsOf({ fill, schema, rules: [rule], worlds })));
  }
  return mutants;
}
