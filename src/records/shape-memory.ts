/**
 * Plans by the shape of their requests: a plan is made once, and the values of each request fill its forms. The shape
 * is the key that the caller of this module states, and the answers to all that the making of the plan asked of the
 * rules of the request's caller. Answers are compared by the identities of compiled rules, so a plan never serves a
 * request whose rules give other SQL.
 */
import { BoundedMap } from '../bounded-map.ts';
import { invariant } from '../invariant.ts';
import type { Permit } from '../policy/access.ts';
import type { Action, CallerKind, Policy, Row } from '../policy/types.ts';
import type { Collection, MemberAction } from '../schema/model/model.ts';
import type { AccessContext, Prospect } from './access-context.ts';

/** Asks the rules of a request's caller. */
type PermitQuestion = (access: AccessContext) => Permit | undefined;
type Answers = readonly (Permit | undefined)[];

/** The part of a request that fills the places of permits. */
export interface AnsweredPermits {
  readonly answers: Answers;
}
/** A plan that serves the request, and the request's answers for its forms. */
export interface KnownPlan<Plan> extends AnsweredPermits {
  readonly plan: Plan;
}

interface Remembered<Plan> {
  readonly plan: Plan;
  readonly questions: readonly PermitQuestion[];
  readonly shapes: readonly (string | undefined)[];
}

const MOST_SHAPE_KEYS = 512;
/** The plans of one key: kinds of callers that the key does not tell apart. */
const MOST_PLANS_OF_A_KEY = 8;
/**
 * The characters of all texts that are made between two clearings, of some six bytes each. A filter of 4 KiB has a
 * text ten times as long, so that the number of plans alone would leave a client hundreds of MiB.
 */
const MOST_TEXT_OF_PLANS = 4 * 1024 * 1024;

export class ShapeMemory<Plan> {
  readonly #known = new BoundedMap<string, Remembered<Plan>[]>(MOST_SHAPE_KEYS);
  readonly #textOf: (plan: Plan) => number;
  #text = 0;

  /** @param textOf the characters of a plan's statements */
  constructor(textOf: (plan: Plan) => number) {
    this.#textOf = textOf;
  }

  /**
   * The plan of the request's shape, made if there is none.
   *
   * @param key all that decides the plan, besides what `make` asks of the access that it is given
   */
  planOf(key: string, access: AccessContext, make: (placed: AccessContext) => Plan): KnownPlan<Plan> {
    const plans = this.#known.get(key) ?? [];
    for (const known of plans) {
      const answers = sameAnswers(known, access);
      if (answers !== undefined) return { plan: known.plan, answers };
    }
    const asked = new AskedRules(access);
    const plan = make(asked);
    const { answers, questions } = asked.close();
    const shapes = answers.map((answer) => answer?.shape);
    const others = this.#hasRoomFor(plan) ? plans.slice(0, MOST_PLANS_OF_A_KEY - 1) : [];
    this.#known.set(key, [{ plan, questions, shapes }, ...others]);
    return { plan, answers };
  }

  /** A full memory drops everything, and shapes in use are soon back. */
  #hasRoomFor(plan: Plan): boolean {
    const text = this.#textOf(plan);
    this.#text += text;
    if (this.#text <= MOST_TEXT_OF_PLANS) return true;
    this.#known.clear();
    this.#text = text;
    return false;
  }
}

/** Undefined: the rules of this caller give other SQL. */
function sameAnswers<Plan>({ questions, shapes }: Remembered<Plan>, access: AccessContext): Answers | undefined {
  const answers: (Permit | undefined)[] = [];
  for (let i = 0; i < questions.length; i++) {
    const answer = questions[i]!(access);
    if (answer?.shape !== shapes[i]) return undefined;
    answers.push(answer);
  }
  return answers;
}

/**
 * The access with which a plan is made: its permits have places instead of the caller's values, and it remembers
 * what it was asked. A plan depends on nothing else of the caller.
 */
class AskedRules implements AccessContext {
  readonly collection: Collection;
  readonly #questions: PermitQuestion[] = [];
  readonly #answers: (Permit | undefined)[] = [];
  readonly #placed = new Map<string, Permit | undefined>();
  #access: AccessContext | undefined;

  constructor(access: AccessContext) {
    this.collection = access.collection;
    this.#access = access;
  }

  get auth(): Row {
    throw new Error('a plan serves all callers of a shape, so it reads none');
  }

  get kind(): CallerKind {
    throw new Error('a plan serves all callers of a shape, so it has no kind of them');
  }

  get principal(): string {
    throw new Error('a plan serves all callers of a shape, so it has no principal');
  }

  get now(): string {
    throw new Error('a plan serves all requests of a shape, so it has no time');
  }

  readonly permit = (collection: string, action: Action): Permit =>
    this.#once(`${action} ${collection}`, (access) => access.permit(collection, action))!;

  readonly member = (collection: string, member: string, action: MemberAction): Permit | undefined =>
    this.#once(`${action} ${collection} ${member}`, (access) => access.member(collection, member, action));

  readonly violation: AccessContext['violation'] = (collection, check, action) =>
    this.#once(`${action} ${collection} check ${check.name}`, (access) => access.violation(collection, check, action))!;

  readonly prospect = (rules: readonly Policy[]): Prospect => ({
    certain: this.#ask((access) => access.prospect(rules).certain)!,
    possible: this.#ask((access) => access.prospect(rules).possible)!,
  });

  /** The plan is made, and asks nothing more. */
  close(): { readonly questions: readonly PermitQuestion[]; readonly answers: Answers } {
    this.#access = undefined;
    return { questions: this.#questions, answers: this.#answers };
  }

  #once(name: string, question: PermitQuestion): Permit | undefined {
    if (!this.#placed.has(name)) this.#placed.set(name, this.#ask(question));
    return this.#placed.get(name);
  }

  #ask(question: PermitQuestion): Permit | undefined {
    invariant(this.#access !== undefined, 'a plan asks for rules only while it is made');
    const place = this.#answers.length;
    const answer = question(this.#access);
    this.#questions.push(question);
    this.#answers.push(answer);
    return answer?.placed((request: AnsweredPermits) => request.answers[place]!);
  }
}
