/**
 * Compares two unions of rules: whether there is a world in which one allows and the other does not. Every
 * world that is found is decided again by the predicates of both; that there is none is claimed only
 * where the search has tried everything.
 */
import { present } from '../../../invariant.ts';
import { type Action, type Catalog, type CheckedOperand, keyOf, type Policy, STAMPS } from '../../types.ts';
import { addSeconds } from '../../values.ts';
import { allOperandsOf } from '../../visit.ts';
import { subsumes } from '../subsumes.ts';
import { Asked, type Subject } from './asked-request.ts';
import { instantBetween } from './domains.ts';
import { addressesFor } from './fact-terms.ts';
import { all, type Formula, someOf } from './formula.ts';
import { IS_NOT_TRUE, IS_TRUE, type Names, type Proposition } from './questions.ts';
import { Rows } from './rows.ts';
import { Budget, Search } from './search.ts';
import type { RoleNames, Standing, TriedCaller } from './standing.ts';
import { Translation } from './translate.ts';
import { WrittenVariables } from './variables.ts';
import { worldOf } from './witness.ts';
import { decides, isStorable, meets, type World } from './world.ts';

export interface RulesPlace {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
}
/** The rules of an action: a union. */
export type Rules = readonly Policy[];
export type RuleRelation = 'same' | 'narrower' | 'wider' | 'both' | 'unknown';

/** `world`: one that the first rules allow and the others do not. */
export type Found = { readonly kind: 'world'; readonly world: World } | { readonly kind: 'none' | 'unknown' };

export interface RulesComparison {
  readonly verdict: RuleRelation;
  /** The new rules allow it, the old ones do not. */
  readonly wider?: World;
  /** The old rules allow it, the new ones do not. */
  readonly narrower?: World;
}
export interface SolveOptions {
  readonly budget?: Budget;
  /** Left out: every caller, guests included. */
  readonly callers?: readonly TriedCaller[];
}

/** Milliseconds for a comparison. */
export const DEFAULT_BUDGET = 50;
/** The callers that a test can name. */
export const TESTED_CALLERS: readonly TriedCaller[] = [{ kind: 'user' }, { kind: 'guest' }];

/** Guests and keys are tried only if the rules ask for something in which they differ from every user. */
function everyCaller(operands: readonly CheckedOperand[]): readonly TriedCaller[] {
  const others: readonly TriedCaller[] = [{ kind: 'guest' }, { kind: 'key' }];
  return [{ kind: 'user' }, ...(operands.some(readsCaller) ? others : [])];
}

const readsCaller = (operand: CheckedOperand): boolean => {
  if (operand.kind === 'request') return operand.source === 'auth' || operand.name === 'request.kind';
  const start = operand.kind === 'column' ? operand.scope : operand.kind === 'count' ? operand.path.scope : undefined;
  return start?.kind === 'request';
};

export function compareRules(
  place: RulesPlace,
  [old, changed]: readonly [Rules, Rules],
  options: SolveOptions = {},
): RulesComparison {
  const budget = options.budget ?? new Budget(DEFAULT_BUDGET);
  const wider = findWorld(place, { allowedBy: changed, deniedBy: old }, { ...options, budget });
  const narrower = findWorld(place, { allowedBy: old, deniedBy: changed }, { ...options, budget });
  return {
    verdict: relationOf(wider.kind, narrower.kind),
    ...(wider.kind === 'world' && { wider: wider.world }),
    ...(narrower.kind === 'world' && { narrower: narrower.world }),
  };
}

export function relationOf(wider: Found['kind'], narrower: Found['kind']): RuleRelation {
  if (wider === 'world' && narrower === 'world') return 'both';
  if (wider === 'unknown' || narrower === 'unknown') return 'unknown';
  if (wider === 'world') return 'wider';
  return narrower === 'world' ? 'narrower' : 'same';
}

/** Undefined: unknown. */
export function isEquivalent(
  place: RulesPlace,
  pair: readonly [Rules, Rules],
  options: SolveOptions = {},
): boolean | undefined {
  const { verdict, wider, narrower } = compareRules(place, pair, options);
  if (wider !== undefined || narrower !== undefined) return false;
  return verdict === 'same' ? true : undefined;
}

export interface SolverQuestion {
  readonly allowedBy: Rules;
  readonly deniedBy: Rules;
  /** Further unions, each of which allows it too. */
  readonly alsoAllowedBy?: readonly Rules[];
  readonly conditions?: readonly WorldCondition[];
}
/** A condition on the record before the write (of a create: the new one), and on `@next`. */
export interface WorldCondition {
  readonly policy: Policy;
  /** False: it is false or unknown. */
  readonly isTrue: boolean;
}
/** Every policy of a question. */
export const policiesOf = ({ allowedBy, deniedBy, alsoAllowedBy = [], conditions = [] }: SolverQuestion): Rules => [
  ...allowedBy,
  ...deniedBy,
  ...alsoAllowedBy.flat(),
  ...conditions.map(({ policy }) => policy),
];

/** The search knows no keys of several columns. A collection that no rule names may have one. */
function isBeyondSearch({ catalog, collection }: RulesPlace, asking: SolverQuestion): boolean {
  const others = [...catalog.collections.values()].filter((each) => keyOf(each).made !== undefined);
  if (others.length === 0) return false;
  const text = JSON.stringify(policiesOf(asking).map(({ checked }) => checked));
  return others.some(({ name }) => name === collection || text.includes(JSON.stringify(name)));
}

/** A world that the one union allows and the other denies. */
export function findWorld(place: RulesPlace, asking: SolverQuestion, options: SolveOptions = {}): Found {
  const { budget = new Budget(DEFAULT_BUDGET) } = options;
  const { allowedBy, deniedBy } = asking;
  const left = allowedBy.filter((rule) => !deniedBy.some((other) => subsumes(other.checked, rule.checked)));
  if (left.length === 0) return { kind: 'none' };
  if (isBeyondSearch(place, { ...asking, allowedBy: left })) return { kind: 'unknown' };
  let isCut = false;
  const operands = policiesOf({ ...asking, allowedBy: left }).flatMap(({ checked }) => allOperandsOf(checked));
  const nows = instantsOf(operands, place.action);
  const standing = { isNowFree: nows.length === 1, addresses: addressesFor(operands) };
  for (const caller of options.callers ?? everyCaller(operands)) {
    for (const now of nows) {
      const attempt = new SearchAttempt(place, { ...asking, allowedBy: left }, { ...standing, caller, now, budget });
      const world = attempt.find();
      if (world !== undefined) return { kind: 'world', world };
      isCut ||= attempt.isCut;
    }
  }
  return { kind: isCut ? 'unknown' : 'none' };
}

interface AttemptOptions extends Omit<Standing, 'action' | 'roles'> {
  readonly budget: Budget;
}

class SearchAttempt {
  readonly #place: RulesPlace;
  readonly #asking: SolverQuestion;
  readonly #rows: Rows;
  readonly #translation: Translation;
  readonly #subject: Subject;
  readonly #search: Search;
  #world: World | undefined;

  constructor(place: RulesPlace, asking: SolverQuestion, { budget, ...given }: AttemptOptions) {
    this.#place = place;
    this.#asking = asking;
    this.#rows = new Rows(place.catalog);
    this.#subject = this.#makeSubject();
    const standing = { ...given, action: place.action, roles: rolesOf(place.catalog) };
    this.#translation = new Translation(this.#rows, new Asked(this.#rows, standing, this.#subject));
    this.#search = new Search(this.#rows, budget, () => this.#build());
  }

  get isCut(): boolean {
    return this.#search.isCut;
  }

  find(): World | undefined {
    const { allowedBy, deniedBy, alsoAllowedBy = [], conditions = [] } = this.#asking;
    const formulas = [
      this.#translation.asked.axioms(),
      ...[allowedBy, ...alsoAllowedBy].map((rules) => someOf(rules.map((rule) => this.#rule(rule, IS_TRUE)))),
      ...deniedBy.map((rule) => this.#rule(rule, IS_NOT_TRUE)),
      ...conditions.map(({ policy, isTrue }) => this.#condition(policy, isTrue ? IS_TRUE : IS_NOT_TRUE)),
    ];
    return this.#search.find(formulas) ? this.#world : undefined;
  }

  #makeSubject(): Subject {
    const { action, collection } = this.#place;
    const rows = this.#rows;
    const stored = action === 'create' ? undefined : rows.make(collection);
    if (stored !== undefined) rows.mustBeStored(stored);
    if (action !== 'create' && action !== 'update') return { stored, written: undefined };
    const fresh = stored ?? rows.make(collection);
    if (stored === undefined) rows.mustNotBeStored(fresh);
    return { stored, written: new WrittenVariables(collection, fresh.id) };
  }

  #condition({ checked }: Policy, question: Proposition): Formula {
    const { stored, written } = this.#subject;
    const record = present(stored ?? written, 'the record of the question');
    const names = { record, next: written ?? record, variables: new Map() };
    return this.#translation.formula(checked, names, question);
  }

  /** A rule that does not name `@next` holds for the stored and for the resulting record. */
  #rule({ checked, namesNext }: Policy, question: Proposition): Formula {
    const { stored, written } = this.#subject;
    const ask = (names: Omit<Names, 'variables'>): Formula =>
      this.#translation.formula(checked, { ...names, variables: new Map() }, question);
    if (written === undefined) return ask({ record: stored!, next: stored! });
    if (stored === undefined) return ask({ record: written, next: written });
    if (namesNext) return ask({ record: stored, next: written });
    const both = [ask({ record: stored, next: written }), ask({ record: written, next: written })];
    return question.isOpposite ? someOf(both) : all(both);
  }

  /** The world counts only if the predicates decide it in the same way. */
  #build(): boolean {
    const mark = this.#rows.trail.mark;
    const world = worldOf(this.#rows, this.#translation.asked);
    this.#rows.trail.undoTo(mark);
    if (world === undefined || !isAnswer(this.#asking, world, this.#place.catalog)) return false;
    this.#world = world;
    return true;
  }
}

/** The predicates decide the world as the question asks, and tables can hold it. */
export function isAnswer(
  { allowedBy, deniedBy, alsoAllowedBy = [], conditions = [] }: SolverQuestion,
  world: World,
  catalog: Catalog,
): boolean {
  const isAllowed = [allowedBy, ...alsoAllowedBy].every((rules) => decides(rules, world, catalog));
  if (!isAllowed || decides(deniedBy, world, catalog) || !isStorable(world, catalog)) return false;
  return conditions.every(({ policy, isTrue }) => meets(policy, world, catalog) === isTrue);
}

/** The roles of a schema include others; those of another catalog do not. */
function rolesOf({ roles }: Catalog): RoleNames {
  const includes = (role: unknown): readonly string[] =>
    (role as { readonly includes?: readonly string[] } | undefined)?.includes ?? [];
  return { includes: new Map([...roles].map(([name, role]) => [name, includes(role)])) };
}

// ---------------------------------------------------------------- the instant of the request

const USUAL_NOW = '2026-03-01T12:00:00.000000Z';
const DAY_SECONDS = 86_400;

/**
 * Instants that represent all others: where a moved `@now` meets a written instant, just before and after it, and
 * between two such.
 */
function instantsOf(operands: readonly CheckedOperand[], action: Action): readonly string[] {
  const offsets = new Set(operands.flatMap((operand) => (operand.kind === 'now' ? [operand.seconds] : [])));
  // A write stamps its record with the instant.
  if ((action === 'create' || action === 'update') && operands.some(isStamp)) offsets.add(0);
  if (offsets.size === 0) return [USUAL_NOW];
  const written = new Set<string>();
  for (const operand of operands) {
    if (operand.kind !== 'literal') continue;
    for (const value of [operand.value].flat()) if (INSTANT.test(String(value))) written.add(String(value));
  }
  const days = operands.some((operand) => operand.kind === 'now' && operand.zone !== undefined);
  const points = new Set<string>();
  for (const text of written)
    for (const seconds of offsets) {
      const at = addSeconds(text.length === 10 ? `${text}T12:00:00.000000Z` : text, -seconds);
      for (const by of days ? [-2 * DAY_SECONDS, -DAY_SECONDS, -1, 0, 1, DAY_SECONDS, 2 * DAY_SECONDS] : [-1, 0, 1])
        points.add(addSeconds(at, by));
    }
  return [USUAL_NOW, ...pointsBetween([...points].toSorted())];
}

const isStamp = (operand: CheckedOperand): boolean =>
  operand.kind === 'column' && operand.column.kind === 'field' && STAMPS.includes(operand.column.field.name);

const INSTANT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d\.\d{6}Z)?$/;

/** The points, and one between each two. */
function pointsBetween(points: readonly string[]): readonly string[] {
  return points.flatMap((point, i) => {
    const next = points[i + 1];
    if (next === undefined) return [point, addSeconds(point, 400 * DAY_SECONDS)];
    return [...(i === 0 ? [addSeconds(point, -400 * DAY_SECONDS)] : []), point, instantBetween(point, next)];
  });
}
