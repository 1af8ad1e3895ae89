/**
 * The filter of a query: an expression over the record, compiled by the stages of policies as
 * another dialect. It sees what its author may read, and nothing else.
 *
 *   text ─examine→ Checked ─plan→ Planned ─bind→ values ─lower, as the caller sees→ Condition ─emit→ SQL
 */

import { LIMITS } from '../../../grammar/limits.ts';
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import { firstNames, nearest } from '../../../grammar/suggest.ts';
import { memoizedBy } from '../../memoized.ts';
import { type Sql, sql } from '../../sql.ts';
import { isTouchedBy } from '../analyse/touched-rows.ts';
import type { ColumnValues, LookUp } from '../branch.ts';
import { examine } from '../check/checker.ts';
import { typeGiven } from '../check/params.ts';
import { unknownEnumValues } from '../check/warnings/enum-values.ts';
import type { Facts } from '../column-facts.ts';
import { columnTested, valuesOfTest } from '../column-facts.ts';
import { type ColumnRef, type Condition, RECORD, type Test } from '../condition.ts';
import { type BudgetedDecision, budgetedClosures } from '../emit/closures.ts';
import { shapeNeedsOf } from '../emit/shape-needs.ts';
import type { Values } from '../emit/value-places.ts';
import { lookUpsIn } from '../hoisting.ts';
import { bind } from '../lower/specialise.ts';
import { equal, OPERATORS } from '../operators.ts';
import { describeType, isNumeric, readerOfOperand } from '../scalar-types.ts';
import {
  type CallerKind,
  type Catalog,
  type Checked,
  type ColumnOperand,
  idOf,
  type Needs,
  type Params,
  type Related,
  type RequestOperand,
  type Row,
  type ValueType,
} from '../types.ts';
import type { Scalar } from '../values.ts';
import type { Visibility } from '../visibility.ts';
import { comparesOf } from '../visit.ts';
import type { WorkBudget } from '../work-budget.ts';
import {
  FilterPlan,
  FilterPlans,
  type LoweredFilter,
  NO_LISTS,
  type Opacity,
  type RelatedRows,
} from './filter-plans.ts';
import { paramNeedleIssues, statedNeedleIssues } from './needles.ts';

/** A filter has one place for each. */
export const MAX_PARAMS = LIMITS.comparisons;
export const MAX_FILTER_BYTES = LIMITS.bytes;

export interface FilterPlace {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly params: Params;
}
/** The caller, and the time of the request. */
export interface FilterRequest {
  readonly auth: Row;
  readonly kind?: CallerKind | undefined;
  readonly now: string;
}
export interface CompiledFilter {
  /** Present without issues. */
  readonly filter?: Filter;
  readonly issues: readonly PolicyIssue[];
}
/** A param that its place cannot take. */
export interface ParamIssue {
  readonly name: string;
  readonly message: string;
}

export function compileFilter(text: string, { catalog, collection, params }: FilterPlace): CompiledFilter {
  const plans = plansOf(catalog);
  const key = JSON.stringify([collection, text, Object.entries(params).map(([name, value]) => [name, kindIn(value)])]);
  const known = plans.get(key);
  if (known !== undefined) return { filter: new Filter(known, params), issues: [] };
  const { checked, issues } = examine(text, {
    catalog: withoutConditions(catalog),
    collection,
    action: 'list',
    params,
  });
  if (checked === undefined || issues.length > 0) return { issues };
  const unknown = comparesOf(checked).flatMap((compare) => unknownEnumValues(compare, text));
  // A policy may speak of values that were stored before; who filters has mistyped.
  if (unknown.length > 0) return { issues: unknown.map((issue) => ({ ...issue, severity: 'error' })) };
  const excess = statedNeedleIssues(checked);
  if (excess.length > 0) return { issues: excess };
  const plan = new FilterPlan(checked, catalog);
  plans.add(key, plan);
  return { filter: new Filter(plan, params), issues };
}

type MemberColumn = Exclude<ColumnOperand['column'], { kind: 'element' }>;
/** A member of the record, and a value of its type that the member must have. */
export type MemberValue = MemberColumn & { readonly value: Scalar };

/** The filter `a = $0 and b = $1`. Equal sets of members share a plan in any order. */
export function equalityFilter(
  members: readonly MemberValue[],
  { catalog, collection }: Omit<FilterPlace, 'params'>,
): Filter {
  const sorted = members.length === 1 ? members : members.toSorted((a, b) => (columnName(a) < columnName(b) ? -1 : 1));
  const plans = plansOf(catalog);
  // No key of a filter that was compiled from a text begins with a name.
  const key = `${collection} ${sorted.map(columnName).join(' ')}`;
  let plan = plans.get(key);
  if (plan === undefined) {
    const items = sorted.map(({ value: _, ...column }, i) => equalsParam(column, `${i}`, { catalog, collection }));
    plan = new FilterPlan({ kind: 'and', items, span: NO_SPAN }, catalog);
    plans.add(key, plan);
  }
  const params: Record<string, Scalar> = {};
  for (let i = 0; i < sorted.length; i++) params[i] = sorted[i]!.value;
  return new Filter(plan, params);
}

function columnName(column: MemberColumn): string {
  if (column.kind === 'id') return 'id';
  return column.kind === 'field' ? column.field.name : column.relation.name;
}

/** No text states it. */
const NO_SPAN = { start: 0, end: 0 };

function equalsParam(column: MemberColumn, param: string, place: Omit<FilterPlace, 'params'>): Checked {
  const { collection } = place;
  const type = memberType(column, place);
  const shared = { type, nullable: true, span: NO_SPAN } as const;
  const own = { ...shared, kind: 'column', scope: { kind: 'record' }, collection, steps: [], column } as const;
  return equal(own, { ...shared, kind: 'request', source: 'param', name: param, list: false }, NO_SPAN);
}

function memberType(column: MemberColumn, { catalog, collection }: Omit<FilterPlace, 'params'>): ValueType {
  switch (column.kind) {
    case 'id':
      return idOf(catalog, collection);
    case 'field':
      return column.field.type;
    case 'belongs_to':
      return idOf(catalog, column.relation.collection);
  }
}

const plansOf = memoizedBy((_: Catalog) => new FilterPlans());

/** All that the types in a filter may take from the value of a param. */
function kindIn(value: unknown): string {
  return Array.isArray(value) ? `list of ${typeGiven(value)}` : String(typeGiven(value));
}

/** Named conditions are those of the schema's author. */
const withoutConditions = ({ conditions, ...catalog }: Catalog): Catalog => catalog;

export class Filter {
  readonly #plan: FilterPlan;
  readonly #params: Params;

  constructor(plan: FilterPlan, params: Params) {
    this.#plan = plan;
    this.#params = params;
  }

  /** Reports params of another type than their place, and params that no place names. */
  get issues(): readonly ParamIssue[] {
    const { named } = this;
    const unnamed = Object.keys(this.#params).filter((name) => !named.has(name));
    return [...this.misfits, ...unnamed.map((name) => ({ name, message: `the filter names no \`$${name}\`` }))];
  }

  /** Reports params of another type than their place, and those that are too long to look for. */
  get misfits(): readonly ParamIssue[] {
    const unfit = this.#unfit();
    return unfit.length > 0 ? unfit : paramNeedleIssues(this.#plan.needles, this.#params);
  }

  #unfit(): readonly ParamIssue[] {
    const places = this.#paramPlaces();
    return Object.entries(this.#params).flatMap(([name, value]) => {
      const unknown = this.#unknownOf(name, value);
      if (unknown !== undefined) return [{ name, message: unknown }];
      const unfit = places.find((place) => place.name === name && !fitsPlace(value, place));
      return unfit === undefined ? [] : [{ name, message: expectedAt(unfit) }];
    });
  }

  /** The expected values of a param that the enum on its other side does not have. */
  #unknownOf(name: string, value: unknown): string | undefined {
    const values = this.#plan.enumOf(name);
    const isKnown = (each: unknown): boolean =>
      each === null || typeof each === 'object' || values!.some((known) => known === each);
    const given = Array.isArray(value) ? value : [value];
    if (values === undefined || given.every(isKnown)) return undefined;
    const near = nearest(String(given.find((each) => !isKnown(each))), values.map(String));
    return near === undefined
      ? `expected ${firstNames(values)}`
      : `expected a value of the enum; did you mean \`${near}\`?`;
  }

  /** The names of the params that it has a place for. */
  get named(): ReadonlySet<string> {
    return new Set(this.#paramPlaces().map(({ name }) => name));
  }

  #paramPlaces(): readonly RequestOperand[] {
    return this.#plan.plan.slots.flatMap(({ operand }) =>
      'source' in operand && operand.source === 'param' ? [operand] : [],
    );
  }

  get params(): Params {
    return this.#params;
  }

  /** The same filter, with each text among its params read as a value of its place. A text that is none stays, and is an issue. */
  ofTexts(): Filter {
    const read: Record<string, unknown> = { ...this.#params };
    for (const { operand } of this.#plan.plan.slots) {
      if (!('source' in operand) || operand.source !== 'param' || !Object.hasOwn(read, operand.name)) continue;
      const { readText } = readerOfOperand(operand);
      const typed = (given: unknown): unknown => (typeof given === 'string' ? (readText(given) ?? given) : given);
      const given = read[operand.name];
      // A list of one element is a text of the query string too
      read[operand.name] = Array.isArray(given) ? given.map(typed) : operand.list ? [typed(given)] : typed(given);
    }
    return new Filter(this.#plan, read as Params);
  }

  /** The checked tree, for explanations. */
  get checked(): Checked {
    return this.#plan.checked;
  }

  /** Returns true if all matching records have one value of the belongs_to. */
  requires(relation: string): boolean {
    return this.#plan.pins(relation).some((pin) => {
      const isParam = pin.kind === 'request' && pin.source === 'param';
      return !isParam || (this.#params[pin.name] ?? null) !== null;
    });
  }

  /** The condition on the row that is named `alias`. */
  where(alias: string, request: FilterRequest, visibility: Visibility): Sql {
    return this.asked(request, visibility).where(alias);
  }

  /** Binds the filter to this caller and time. */
  asked({ auth, kind, now }: FilterRequest, visibility: Visibility): AskedFilter {
    const { plan } = this.#plan;
    const binding = bind(plan, { auth, kind, query: {}, params: this.#params, now });
    const lowered = this.#plan.lowered(binding, visibility);
    return new AskedFilter(lowered, binding.values, visibility);
  }
}

/** A filter's condition, for a form: the request that fills it gives the values. */
export interface PlacedFilter<Request> {
  readonly valuesOf: (request: Request) => Values;
  readonly visibility: Visibility;
  readonly inTime: Sql | undefined;
  /** A column, whose test for one value is printed as a range. */
  readonly range?: string | undefined;
  /** The filter is a relation test: its list of keys, or the test that a row has one of the list `keys`. */
  readonly byKeys?: 'list' | 'test' | undefined;
  readonly relatedRows?: RelatedRows | undefined;
}

export interface RequiredLink {
  /** A many_to_many of the record. */
  readonly relation: string;
  readonly id: string;
  /** Undefined: the filter asks for nothing else. */
  readonly rest: AskedFilter | undefined;
}

/** A filter of one request. */
export class AskedFilter {
  /** Filters of one shape have the same SQL but for its values, for callers whose rules have the same SQL. */
  readonly shape: string;
  readonly values: Values;
  /** The values that every matching record has. A member that some records hide gives no fact. */
  readonly facts: Facts;
  /** The conjuncts that compare a column with a value. */
  readonly tests: readonly ColumnValues[];
  readonly #lowered: LoweredFilter;
  readonly #visibility: Visibility;
  #decision: BudgetedDecision | undefined;

  constructor(lowered: LoweredFilter, values: Values, visibility: Visibility) {
    const facts: Record<string, unknown> = {};
    const tests: ColumnValues[] = [];
    for (const { column, value } of lowered.facts(values)) {
      facts[column.name] = value;
      if (value === null) continue;
      const isInside = !lowered.tested.has(column.column);
      const isId = column.name === 'id';
      tests.push({ column: column.column, values: [value], ...(isInside && { isInside }), ...(isId && { isId }) });
    }
    for (const test of lowered.listTests) tests.push({ ...columnTested(test), values: valuesOfTest(test, values) });
    this.shape = lowered.shape;
    this.values = values;
    this.facts = facts;
    this.tests = tests;
    this.#lowered = lowered;
    this.#visibility = visibility;
  }

  /** The filter depends on nothing that the caller may not read. */
  get isOpen(): boolean {
    return this.#lowered.isOpen;
  }

  /** It searches or reads other records, so that the values of columns do not tell how many records match. */
  get opacity(): Opacity | undefined {
    return this.#lowered.opacity;
  }

  /** A link to a record that every matching record has, and the rest of the filter. Undefined: it requires none. */
  get link(): RequiredLink | undefined {
    const { link } = this.#lowered;
    if (link === undefined) return undefined;
    const id = link.idIn(this.values);
    if (id === undefined || id === null) return undefined;
    const rest = link.rest && new AskedFilter(link.rest, this.values, this.#visibility);
    return { relation: link.relation, id: String(id), rest };
  }

  /** The related rows that it looks up for each record, with those of the caller's rules on them. */
  get lookUps(): readonly LookUp[] {
    return lookUpsIn(this.#lowered.cond, NO_LISTS, (collection) => this.#visibility.records(collection).lookUps);
  }

  /**
   * `inTime`: a condition that fails once the statement has had its time; asked of each row, in every loop within
   * another one or around it, and of the rows of a list of keys.
   */
  where(alias: string, inTime?: Sql, relatedRows?: RelatedRows): Sql {
    const visibility = this.#visibility;
    const where = this.#lowered.where({ alias, visibility, inTime, relatedRows });
    return withTime(where.fill(this.values, visibility.tenant), inTime);
  }

  /** The same condition of all filters of this shape. */
  placed<Request>(alias: string, placed: PlacedFilter<Request>): Sql {
    const { valuesOf, visibility, inTime, byKeys } = placed;
    const where = this.#lowered.where({ alias, ...placed }).placed(valuesOf, visibility.tenant);
    // The list asks for the time itself
    return byKeys === 'list' ? where : withTime(where, inTime);
  }

  /**
   * Decides in the process. Throws `TooMuchWork`.
   *
   * @param record without the members that the caller may not read
   * @param related the rows that the caller may read, each without such members
   */
  matches(record: Row, related: Related, work: WorkBudget): boolean {
    this.#decision ??= budgetedClosures(this.#lowered.cond)(this.values);
    return this.#decision(record, related, work);
  }

  /** The related rows that `matches` reads. */
  get needs(): Needs {
    const { requested, ...needs } = shapeNeedsOf(this.#lowered.cond);
    return {
      ...needs,
      requested: requested.map(({ slot, ...need }) => ({ ...need, id: this.values[slot] as string })),
    };
  }

  /** The same as that of a residual. */
  dependsOn(collection: string, rows: readonly Row[]): boolean {
    return isTouchedBy(this.#lowered.cond, this.values, collection, rows);
  }

  /** It compares the column with one value. */
  hasRange(column: string): boolean {
    return this.#lowered.tested.has(column);
  }

  /** The column lies between values of it. */
  isBoundOn(column: string): boolean {
    return this.#lowered.isBoundOn(column);
  }

  /** The conditions of it that name no column of the record: where one fails, no record matches. */
  placedFirsts<Request>(
    alias: string,
    { valuesOf, visibility }: Pick<PlacedFilter<Request>, 'valuesOf' | 'visibility'>,
  ) {
    return this.#lowered.firsts(alias, visibility).map((where) => where.placed(valuesOf, visibility.tenant));
  }

  /** The conditions of it between whose values the column lies. */
  placedBounds<Request>(
    alias: string,
    column: string,
    { valuesOf, visibility }: Pick<PlacedFilter<Request>, 'valuesOf' | 'visibility'>,
  ) {
    return this.#lowered.bounds(alias, column, visibility).map((where) => where.placed(valuesOf, visibility.tenant));
  }

  /** The test of the column alone, as a range. */
  placedRange<Request>(alias: string, column: string, valuesOf: (request: Request) => Values): Sql {
    return this.#lowered.range(alias, column, this.#visibility).placed(valuesOf);
  }

  /**
   * The record's own columns that the filter compares by reading the whole table; `indexed`: the first
   * columns of indexes. Undefined: an index finds few records, or the filter reads other records.
   */
  unserved(indexed: ReadonlySet<string>): readonly ComparedColumn[] | undefined {
    return unservedOf(this.#lowered.cond, indexed);
  }
}

/** Time comes first: within `IS TRUE`, PostgreSQL evaluates the parts in their order, up to the first that fails. */
const withTime = (where: Sql, inTime: Sql | undefined): Sql =>
  inTime === undefined ? where : sql`${inTime} AND ${where}`;

export type ComparedColumn = Pick<ColumnRef, 'name' | 'column'>;

function unservedOf(cond: Condition, indexed: ReadonlySet<string>): readonly ComparedColumn[] | undefined {
  if (cond.kind === 'const') return cond.value ? [] : undefined;
  if (cond.kind === 'and' || cond.kind === 'or') {
    const parts = cond.items.map((item) => unservedOf(item, indexed));
    const unserved = parts.filter((part) => part !== undefined);
    const isServed = cond.kind === 'and' ? unserved.length < parts.length : unserved.length === 0;
    return isServed ? undefined : unserved.flat();
  }
  const tested = cond.kind === 'test' ? ownColumnOf(cond) : undefined;
  const column = cond.kind === 'null' ? cond.column : tested;
  return column === undefined || column.source.id !== RECORD.id || indexed.has(column.column) ? undefined : [column];
}

/** `matches` has an index of its own. */
const ownColumnOf = ({ op, left, right }: Test): ColumnRef | undefined =>
  OPERATORS[op].sides === 'search' ? undefined : [left, right].find((side) => side.kind === 'column');

function fitsPlace(value: unknown, place: RequestOperand): boolean {
  const { readJson } = readerOfOperand(place);
  if (value === null) return true;
  if (!place.list) return readJson(value) !== undefined;
  return (
    Array.isArray(value) &&
    value.length <= LIMITS.elements &&
    value.every((element) => element === null || readJson(element) !== undefined)
  );
}

function expectedAt({ type, meetsInt, list }: RequestOperand): string {
  const number = meetsInt ? 'int, or a number whose fraction a double holds' : 'number';
  const what = isNumeric(type) ? number : describeType(type);
  return list ? `expected a list of at most ${LIMITS.elements} elements of the type ${what}` : `expected ${what}`;
}
