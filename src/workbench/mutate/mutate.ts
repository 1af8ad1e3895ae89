/** Mutation testing of rules: a change that no expectation notices is a rule that no test holds. */
import { Budget } from '../../policy/analyse/solve/search.ts';
import {
  compareRules,
  DEFAULT_BUDGET,
  type RulesComparison,
  TESTED_CALLERS,
} from '../../policy/analyse/solve/solve.ts';
import type { World } from '../../policy/analyse/solve/world.ts';
import { compileChecked } from '../../policy/compile.ts';
import type { Action, Policy } from '../../policy/types.ts';
import { askedPlace, rulesOfAction } from '../../schema/model/kept/soft-delete.ts';
import type { Schema, WriteAction } from '../../schema/model/model.ts';
import { negatedCheck } from '../../schema/rules/checks.ts';
import { compareChecks } from '../compare-checks.ts';
import type { PlacedRule } from '../rule-places.ts';
import { type PolicyTests, readTests } from '../test/read-tests.ts';
import type { TestWorld } from '../test/test-world.ts';
import { passingTestOfWorld, testOfWorld } from '../world-test.ts';
import { AskedWorld, type Substitutes } from './asked-world.ts';
import { mutationsOfCheck } from './check-mutations.ts';
import { type Mutation, mutationsOf } from './mutations.ts';
import type { TestedWorld } from './telling-test.ts';

export interface Mutant {
  readonly path: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly from: string;
  readonly to: string;
  /** `unknown`: no test notices it, and neither the rows of the tests nor the solver separate it from the rule. */
  readonly verdict: 'killed' | 'survived' | 'unknown';
  /** A file with a test that notices it, where one was found. */
  readonly test: string | null;
}

export interface MutationRun {
  /** Gives the rows of a further test. */
  readonly fill: (tests: PolicyTests) => TestWorld | Promise<TestWorld>;
  readonly schema: Schema;
  readonly rules: readonly PlacedRule[];
  readonly worlds: readonly TestedWorld[];
}

/** Mutants that mean the same as their rule are left out. `fill` may replace the rows of a database. */
export async function mutantsOf(run: MutationRun): Promise<readonly Mutant[]> {
  const mutants: Mutant[] = [];
  for (const placed of run.rules) {
    const asked = run.worlds.map((tested) => new AskedWorld(tested, run.schema, placed));
    const { rule, check } = placed;
    const mutations =
      check === undefined
        ? mutationsOf(rule, askedPlace(placed, run.schema).catalog)
        : mutationsOfCheck(placed, check, run.schema);
    for (const mutation of mutations) {
      const mutant = await mutantOf(mutation, placed, { asked, run });
      if (mutant !== undefined) mutants.push(mutant);
    }
  }
  return mutants;
}

interface MutationPlace {
  readonly asked: readonly AskedWorld[];
  readonly run: MutationRun;
}

/** Undefined: it means the same as the rule. */
async function mutantOf(
  mutation: Mutation,
  placed: PlacedRule,
  { asked, run }: MutationPlace,
): Promise<Mutant | undefined> {
  const { line, column } = placed.placeOf(mutation.node);
  const mutated = substitutesOf(mutation, placed, run.schema);
  const shared = { path: placed.path, file: run.schema.file, line, column, from: mutation.from, to: mutation.to };
  if (asked.some((world) => world.notices(mutated))) return { ...shared, verdict: 'killed', test: null };
  for (const world of asked) {
    const test = world.tellingTest(mutated);
    if (test !== undefined) return { ...shared, verdict: 'survived', test };
  }
  const first = comparedBySolver(placed, mutated, run.schema, DEFAULT_BUDGET);
  const isUndecided = first.some(({ verdict }) => verdict === 'unknown');
  // The first questions of a process also wait for the solver to be compiled.
  const compared = isUndecided ? comparedBySolver(placed, mutated, run.schema, AGAIN * DEFAULT_BUDGET) : first;
  if (compared.every(({ verdict }) => verdict === 'same')) return undefined;
  for (const world of compared.flatMap(({ wider, narrower }) => [narrower, wider])) {
    const test = world && (await testOfDifference(world, mutated, { placed, run }));
    if (test !== undefined) return { ...shared, verdict: 'survived', test };
  }
  return { ...shared, verdict: 'unknown', test: null };
}

/** Times the budget of the second question about an undecided mutant. */
const AGAIN = 10;

/** `wider`: the mutant allows more than the rule. A check is compared for creates and for updates. */
function comparedBySolver(
  placed: PlacedRule,
  mutated: Substitutes,
  schema: Schema,
  ms: number,
): readonly RulesComparison[] {
  const { rule, collection, action, member, check } = placed;
  const found = schema.collections.get(collection)!;
  const { access, memberAccess, checks } = found;
  const replaced = (rules: readonly Policy[]): readonly Policy[] =>
    rules.flatMap((each) => (mutated.has(each) ? (mutated.get(each) ?? []) : [each]));
  const place = (asked: Action) => ({ catalog: schema, collection, action: asked });
  if (check === undefined) {
    const own = action === 'read' || action === 'create' || action === 'update' ? action : undefined;
    const rulesOfMember = (name: string): readonly Policy[] => (own && memberAccess.get(name)?.[own]) ?? [rule];
    const rules = member === undefined ? rulesOfAction(found, action) : rulesOfMember(member);
    return [
      compareRules(askedPlace(placed, schema), [rules, replaced(rules)], {
        budget: new Budget(ms),
        callers: TESTED_CALLERS,
      }),
    ];
  }
  return MUTATED_WRITES.filter((asked) => check.violated[asked].length > 0).map((asked) => {
    const violations = checks.flatMap(({ violated }) => violated[asked]);
    const [before, after] = [violations, replaced(violations)].map((each) => ({
      allowedBy: access[asked],
      violations: each,
    }));
    return compareChecks(place(asked), [before!, after!], { budget: new Budget(ms) });
  });
}
const MUTATED_WRITES: readonly WriteAction[] = ['create', 'update'];

/** The test of a world of the solver, if it notices the mutant. */
async function testOfDifference(
  world: World,
  mutated: Substitutes,
  { placed, run }: { readonly placed: PlacedRule; readonly run: MutationRun },
): Promise<string | undefined> {
  const { schema, fill } = run;
  const { member } = placed;
  // Rules for deleted records are held by the rows and times of the tests alone.
  if (placed.action === 'restore') return undefined;
  const text = testOfWorld(world, schema, { member, expected: 'yes' });
  const tests = text === undefined ? undefined : readTests(text, schema.file, schema).tests;
  if (text === undefined || tests === undefined) return undefined;
  const asked = new AskedWorld({ tests, text, world: await fill(tests) }, schema, placed);
  const expected = asked.onlyAnswer;
  return expected !== undefined && asked.notices(mutated)
    ? passingTestOfWorld(world, schema, { member, expected })
    : undefined;
}

/** The policies of the rule or check as the mutation leaves them. */
function substitutesOf({ checked }: Mutation, placed: PlacedRule, catalog: Schema): Substitutes {
  const { rule, check } = placed;
  const { text, source, parts } = rule;
  if (check === undefined) {
    const { catalog: own, action } = askedPlace(placed, catalog);
    const shared = { text, source, parts, catalog: own, action };
    return new Map([[rule, checked && compileChecked({ ...shared, checked }, { codegen: false })]]);
  }
  const entries = MUTATED_WRITES.flatMap((asked) =>
    check.violated[asked].map((violation) => {
      const not = checked && { checked: negatedCheck(checked), text, catalog, action: asked };
      return [violation, not && compileChecked(not, { codegen: false })] as const;
    }),
  );
  return new Map(entries);
}
