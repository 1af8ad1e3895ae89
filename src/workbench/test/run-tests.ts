/** Runs a file of policy tests: each expectation is decided by the predicates and by a database, which must agree. */
import { DatabaseOutcomes, type TestTools } from './database-outcome.ts';
import { fillWorld } from './fill-world.ts';
import { type OnValue, PredicateJudge, type RuleJudgement } from './predicate.ts';
import type { PolicyTests } from './read-tests.ts';
import { type RunningTests, type TestResult, testResult } from './test-result.ts';
import type { TestWorld } from './test-world.ts';

export interface RunOptions {
  readonly onValue?: OnValue | undefined;
  readonly onRules?: ((rules: readonly RuleJudgement[]) => void) | undefined;
}

export interface TestRun {
  readonly world: TestWorld;
  readonly results: readonly TestResult[];
}

/** Expectations at a time: enough to keep the engine busy. The queue of a slow machine refuses tasks that would wait for long. */
const EXPECTATIONS_AT_ONCE = 8;

export async function runTests(tests: PolicyTests, tools: TestTools, options: RunOptions = {}): Promise<TestRun> {
  const { store } = tools;
  const { names, now, expectations } = tests;
  const world = await fillWorld(store, tests);
  const run: RunningTests = {
    judge: new PredicateJudge({ schema: store.schema, world, now, ...options }),
    outcomes: new DatabaseOutcomes({ ...tools, names }),
    names,
  };
  const results: TestResult[] = [];
  for (let at = 0; at < expectations.length; at += EXPECTATIONS_AT_ONCE)
    results.push(
      ...(await Promise.all(expectations.slice(at, at + EXPECTATIONS_AT_ONCE).map((each) => testResult(each, run)))),
    );
  return { world, results };
}
