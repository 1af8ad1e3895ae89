/** The expectations of one test file that a rule or check may decide, and what each becomes under a mutant. */
import type { Policy, RuledAction } from '../../policy/types.ts';
import { rulesOfAction } from '../../schema/model/kept/soft-delete.ts';
import type { Schema } from '../../schema/model/model.ts';
import { PredictedOutcomes } from '../page/predicted-outcome.ts';
import type { PlacedRule } from '../rule-places.ts';
import type { Expectation, Expected } from '../test/expectation.ts';
import { type Judgement, PredicateJudge, type PreparedExpectation } from '../test/predicate.ts';
import { isMet } from '../test/test-result.ts';
import type { WorldAnswer } from '../world-test.ts';
import { type TestedWorld, testOf } from './telling-test.ts';

/** Policies in place of others; undefined: one that is dropped. */
export type Substitutes = ReadonlyMap<Policy, Policy | undefined>;

/** The names of a list, or the answer to one request. */
type MutantDecision = string | 422 | undefined;

const NO_SUBSTITUTES: Substitutes = new Map();

export class AskedWorld {
  readonly #tested: TestedWorld;
  readonly #schema: Schema;
  readonly #placed: PlacedRule;
  /** The decisions of the rules as they are. */
  readonly #decided: readonly DecidedExpectation[];
  /** The answers of other callers and rows so far, and the rest of them. */
  readonly #others: AnsweredExpectation[] = [];
  readonly #rest: Generator<AnsweredExpectation>;

  constructor(tested: TestedWorld, schema: Schema, placed: PlacedRule) {
    this.#tested = tested;
    this.#schema = schema;
    this.#placed = placed;
    const judge = this.#judgeWith(NO_SUBSTITUTES);
    const own = tested.tests.expectations.filter((each) => isAskedBy(each, placed));
    this.#decided = own.map((expectation) => {
      const prepared = this.#preparedOf(expectation, judge);
      return { expectation, prepared, decision: worldDecision(expectation, prepared, judge) };
    });
    this.#rest = this.#answers(judge);
  }

  /** The decision of the rules, if every expectation has the same one. */
  get onlyAnswer(): WorldAnswer | undefined {
    const [first, ...others] = new Set(this.#decided.map(({ decision }) => decision));
    return others.length === 0 && (first === 'yes' || first === 'no' || first === 422) ? first : undefined;
  }

  notices(substitutes: Substitutes): boolean {
    const judge = this.#judgeWith(substitutes);
    return this.#decided.some(
      ({ expectation, prepared, decision }) => worldDecision(expectation, prepared, judge) !== decision,
    );
  }

  /** A test of another caller or row of the file, which notices the mutant. */
  tellingTest(substitutes: Substitutes): string | undefined {
    const judge = this.#judgeWith(substitutes);
    for (let at = 0; ; at++) {
      const other = this.#otherAt(at);
      if (other === undefined) return undefined;
      const { prepared, answer } = other;
      if (worldAnswer(judge.judgePrepared(prepared)) === answer) continue;
      const expected: Expected = answer === 422 ? { kind: 'status', status: answer } : { kind: answer };
      const expectation = { ...prepared.expectation, expected };
      if (this.#isMet(expectation, prepared)) return testOf(expectation, this.#tested);
    }
  }

  /** False, for example, for data that refer to a record which the caller may not read. */
  #isMet(expectation: Expectation, { request }: PreparedExpectation): boolean {
    const { names } = this.#tested.tests;
    const outcomes = new PredictedOutcomes(this.#judgeWith(NO_SUBSTITUTES), names);
    return isMet(expectation, outcomes.predicted(expectation, request), { names });
  }

  #otherAt(at: number): AnsweredExpectation | undefined {
    if (at < this.#others.length) return this.#others[at];
    const { value } = this.#rest.next() as IteratorResult<AnsweredExpectation, undefined>;
    if (value !== undefined) this.#others.push(value);
    return value;
  }

  *#answers(judge: PredicateJudge): Generator<AnsweredExpectation> {
    for (const expectation of this.#candidates()) {
      const prepared = judge.prepared(expectation);
      const answer = worldAnswer(judge.judgePrepared(prepared));
      if (answer !== undefined) yield { prepared, answer };
    }
  }

  #judgeWith(substitutes: Substitutes): PredicateJudge {
    const { world, tests } = this.#tested;
    return new PredicateJudge({ schema: this.#schema, world, now: tests.now, substitutes });
  }

  /** A list is asked about every row. */
  #preparedOf(expectation: Expectation, judge: PredicateJudge): readonly PreparedExpectation[] {
    const { action, record, collection } = expectation;
    if (action !== 'list' || record !== undefined) return [judge.prepared(expectation)];
    return this.#tested.tests.names.of(collection.name).map((name) => judge.prepared({ ...expectation, record: name }));
  }

  /** Every caller with every row; writes with the data of the tests. */
  *#candidates(): Generator<Expectation> {
    for (const action of actionsOf(this.#placed)) yield* this.#candidatesOf(action);
  }

  *#candidatesOf(action: RuledAction): Generator<Expectation> {
    const { collection, member } = this.#placed;
    const { names, expectations } = this.#tested.tests;
    const [first] = expectations;
    if (first === undefined) return;
    const model = this.#schema.collections.get(collection)!;
    const known = this.#decided.map(({ expectation }) => expectation).filter((each) => each.action === action);
    const blank: Expectation = { ...first, collection: model, action, field: undefined, data: undefined, query: {} };
    const datas = [...new Set([...(action === 'update' ? [undefined] : []), ...known.map(({ data }) => data)])];
    const times =
      action === 'restore' ? [...new Set([undefined, ...known.map(({ deletedAt }) => deletedAt)])] : [undefined];
    for (const as of ['guest', ...names.of('users')]) {
      if (action === 'create') {
        for (const data of datas) if (data !== undefined) yield { ...blank, as, data, record: undefined };
        continue;
      }
      for (const record of names.of(collection))
        for (const data of action === 'update' ? datas : [undefined])
          for (const deletedAt of times)
            yield { ...blank, as, record, data, deletedAt, field: action === 'read' ? member : undefined };
    }
  }
}

interface DecidedExpectation {
  readonly expectation: Expectation;
  readonly prepared: readonly PreparedExpectation[];
  readonly decision: MutantDecision;
}
interface AnsweredExpectation {
  readonly prepared: PreparedExpectation;
  readonly answer: WorldAnswer;
}

function worldDecision(
  { action, record }: Expectation,
  prepared: readonly PreparedExpectation[],
  judge: PredicateJudge,
): MutantDecision {
  if (action !== 'list' || record !== undefined) return worldAnswer(judge.judgePrepared(prepared[0]!));
  const listed = prepared.filter((each) => judge.judgePrepared(each).isAllowed);
  return listed.map((each) => each.expectation.record).join();
}

/** Undefined: the data are not valid. */
function worldAnswer({ isAllowed, failed }: Judgement): WorldAnswer | undefined {
  if (isAllowed === undefined) return undefined;
  return isAllowed ? (failed.length > 0 ? 422 : 'yes') : 'no';
}

/** A check is about creates too, unless it is of transitions. */
function actionsOf({ action, check }: PlacedRule): readonly RuledAction[] {
  return check !== undefined && check.violated.create.length > 0 ? ['create', 'update'] : [action];
}

/** Lists and reads share the rules of a `view`. */
function isAskedBy({ collection, action, field, data = {} }: Expectation, placed: PlacedRule): boolean {
  const { collection: name, member, rule, check } = placed;
  if (collection.name !== name) return false;
  if (check !== undefined) return actionsOf(placed).includes(action);
  if (member === undefined) return rulesOfAction(collection, action).includes(rule);
  if (action === 'list' || action === 'delete' || action === 'restore') return false;
  const isAbout = action === 'read' ? field === member : Object.hasOwn(data, member);
  return isAbout && collection.memberAccess.get(member)?.[action]?.includes(rule) === true;
}
