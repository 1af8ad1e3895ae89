/** Mutation testing of rules: a change that no expectation notices is a rule that no test holds. */
import { compareRules, type RulesComparison } from '../../policy/analyse/solve/solve.ts';
import type { World } from '../../policy/analyse/solve/world.ts';
import { compileChecked } from '../../policy/compile.ts';
import type { Policy } from '../../policy/types.ts';
import type { Store } from '../../records/access-context.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { PlacedRule } from '../rule-places.ts';
import type { Expectation, Expected } from '../test/expectation.ts';
import { PredicateJudge } from '../test/predicate.ts';
import { readTests } from '../test/read-tests.ts';
import { TestWorld } from '../test/test-world.ts';
import { testOfWorld } from '../world-test.ts';
import { type Mutation, mutationsOf } from './mutations.ts';
import { type TestedWorld, testOf } from './telling-test.ts';

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
  readonly store: Store;
  readonly schema: Schema;
  readonly rules: readonly PlacedRule[];
  readonly worlds: readonly TestedWorld[];
}

/** Mutants that mean the same as their rule are left out. Replaces the rows of the database. */
export async function mutantsOf(run: MutationRun): Promise<readonly Mutant[]> {
  const mutants: Mutant[] = [];
  for (const placed of run.rules) {
    const asked = run.worlds.map((tested) => new AskedWorld(tested, run.store, placed));
    for (const mutation of mutationsOf(placed.rule, run.schema)) {
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
  const mutated = mutatedRule(mutation, placed, run.schema);
  const shared = { path: placed.path, file: run.schema.file, line, column, from: mutation.from, to: mutation.to };
  if (asked.some((world) => world.notices(mutated))) return { ...shared, verdict: 'killed', test: null };
  for (const world of asked) {
    const test = world.tellingTest(mutated);
    if (test !== undefined) return { ...shared, verdict: 'survived', test };
  }
  const { verdict, wider, narrower } = comparedBySolver(placed, mutated, run.schema);
  if (verdict === 'same') return undefined;
  for (const world of [narrower, wider]) {
    const test = world && (await testOfDifference(world, mutated, { placed, run }));
    if (test !== undefined) return { ...shared, verdict: 'survived', test };
  }
  return { ...shared, verdict: 'unknown', test: null };
}

/** `wider`: the mutant allows more than the rule. */
function comparedBySolver(
  { rule, collection, action, member }: PlacedRule,
  mutated: Policy | undefined,
  schema: Schema,
): RulesComparison {
  const { access, memberAccess } = schema.collections.get(collection)!;
  const own = action === 'list' || action === 'delete' ? undefined : action;
  const rules = member === undefined ? access[action] : ((own && memberAccess.get(member)?.[own]) ?? []);
  const others = rules.flatMap((each) => (each === rule ? (mutated ?? []) : [each]));
  return compareRules({ catalog: schema, collection, action }, [rules, others]);
}

/** The test of a world of the solver, if it notices the mutant. */
async function testOfDifference(
  world: World,
  mutated: Policy | undefined,
  { placed, run }: { readonly placed: PlacedRule; readonly run: MutationRun },
): Promise<string | undefined> {
  for (const isAllowed of [true, false]) {
    const text = testOfWorld(world, run.schema, { member: placed.member, isAllowed });
    const tests = text === undefined ? undefined : readTests(text, run.schema.file, run.schema).tests;
    if (text === undefined || tests === undefined) return undefined;
    const tested = { tests, text, world: await TestWorld.fill(run.store, tests) };
    const asked = new AskedWorld(tested, run.store, placed);
    if (asked.expects(isAllowed) && asked.notices(mutated)) return text;
  }
  return undefined;
}

function mutatedRule({ checked }: Mutation, { rule, action }: PlacedRule, catalog: Schema): Policy | undefined {
  const { text, source, parts } = rule;
  return checked && compileChecked({ checked, text, source, parts, catalog, action }, { codegen: false });
}

/** The expectations of one file that a rule may decide. */
class AskedWorld {
  readonly #tested: TestedWorld;
  readonly #store: Store;
  readonly #placed: PlacedRule;
  /** The decisions of the rules as they are. */
  readonly #decided: readonly (readonly [Expectation, ListedOrAllowed])[];

  constructor(tested: TestedWorld, store: Store, placed: PlacedRule) {
    this.#tested = tested;
    this.#store = store;
    this.#placed = placed;
    const judge = this.#judgeWith(new Map());
    const own = tested.tests.expectations.filter((each) => isAskedBy(each, placed));
    this.#decided = own.map((each) => [each, this.#decisionOf(each, judge)] as const);
  }

  /** The rules decide every expectation so. */
  expects(isAllowed: boolean): boolean {
    return this.#decided.length > 0 && this.#decided.every(([, decision]) => decision === isAllowed);
  }

  notices(mutated: Policy | undefined): boolean {
    const judge = this.#judgeWith(new Map([[this.#placed.rule, mutated]]));
    return this.#decided.some(([expectation, decision]) => this.#decisionOf(expectation, judge) !== decision);
  }

  /** A test of another caller or row of the file, which notices the mutant. */
  tellingTest(mutated: Policy | undefined): string | undefined {
    const before = this.#judgeWith(new Map());
    const after = this.#judgeWith(new Map([[this.#placed.rule, mutated]]));
    for (const expectation of this.#candidates()) {
      const isAllowed = before.judge(expectation).isAllowed;
      if (isAllowed === undefined || after.judge(expectation).isAllowed === isAllowed) continue;
      const expected: Expected = { kind: isAllowed ? 'yes' : 'no' };
      return testOf({ ...expectation, expected }, this.#tested);
    }
    return undefined;
  }

  #judgeWith(substitutes: ReadonlyMap<Policy, Policy | undefined>): PredicateJudge {
    const { world, tests } = this.#tested;
    return new PredicateJudge({ store: this.#store, world, now: tests.now, substitutes });
  }

  #decisionOf(expectation: Expectation, judge: PredicateJudge): ListedOrAllowed {
    if (expectation.action !== 'list' || expectation.record !== undefined) return judge.judge(expectation).isAllowed;
    return judge.listed(expectation, this.#tested.tests.names.of(expectation.collection.name)).join();
  }

  /** Every caller with every row; writes with the data of the tests. */
  *#candidates(): Generator<Expectation> {
    const { collection, action, member } = this.#placed;
    const { names } = this.#tested.tests;
    const callers = ['guest', ...names.of('users')];
    const known = this.#decided.map(([expectation]) => expectation);
    const model = this.#store.schema.collections.get(collection)!;
    const [first] = this.#tested.tests.expectations;
    if (first === undefined) return;
    const blank: Expectation = { ...first, collection: model, action, field: undefined, data: undefined, query: {} };
    const datas = [...new Set([...(action === 'update' ? [undefined] : []), ...known.map(({ data }) => data)])];
    for (const as of callers) {
      if (action === 'create') {
        for (const data of datas) if (data !== undefined) yield { ...blank, as, data, record: undefined };
        continue;
      }
      for (const record of names.of(collection))
        for (const data of action === 'update' ? datas : [undefined])
          yield { ...blank, as, record, data, field: action === 'read' ? member : undefined };
    }
  }
}
type ListedOrAllowed = boolean | string | undefined;

/** Lists and reads share the rules of a `view`. */
function isAskedBy(
  { collection, action, field, data = {} }: Expectation,
  { collection: name, member, rule }: PlacedRule,
): boolean {
  if (collection.name !== name) return false;
  if (member === undefined) return collection.access[action].includes(rule);
  if (action === 'list' || action === 'delete') return false;
  const isAbout = action === 'read' ? field === member : Object.hasOwn(data, member);
  return isAbout && collection.memberAccess.get(member)?.[action]?.includes(rule) === true;
}
