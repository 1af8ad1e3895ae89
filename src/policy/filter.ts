/**
 * The filter of a query: an expression over the record, compiled by the stages of policies as another dialect. It sees what its author may
 * read, and nothing else.
 *
 *   text ─examine→ Checked ─plan→ Planned ─bind→ values ─lower, as the caller sees→ Condition ─emit→ SQL
 */
import { LIMITS } from '../../grammar/limits.ts';
import type { PolicyIssue } from '../../grammar/policy-error.ts';
import type { Sql } from '../sql.ts';
import { examine } from './check/checker.ts';
import { STORED_ROOTS } from './condition.ts';
import { whereOf } from './emit/where.ts';
import { lower } from './lower/lower.ts';
import { bind, type Plan, planOf, settleNow } from './lower/specialise.ts';
import { describeType, readJson } from './scalar-types.ts';
import type { Catalog, Params, Row, ValueType } from './types.ts';
import type { Visibility } from './visibility.ts';

/** A filter has one place for each. */
export const MAX_PARAMS = LIMITS.comparisons;

export interface FilterPlace {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly params: Params;
}
/** Who asks, and when. */
export interface FilterRequest {
  readonly auth: Row;
  readonly now: string;
}
export interface CompiledFilter {
  /** Present if there is no issue. */
  readonly filter?: Filter;
  readonly issues: readonly PolicyIssue[];
}
/** A param that its place cannot take. */
export interface ParamIssue {
  readonly name: string;
  readonly message: string;
}

export function compileFilter(text: string, { catalog, collection, params }: FilterPlace): CompiledFilter {
  const { checked, issues } = examine(text, {
    catalog: withoutConditions(catalog),
    collection,
    action: 'list',
    params,
  });
  if (checked === undefined || issues.length > 0) return { issues };
  return { filter: new Filter(planOf(checked), catalog, params), issues };
}

/** Named conditions are those of the schema's author. */
const withoutConditions = ({ collections, roles }: Catalog): Catalog => ({ collections, roles });

export class Filter {
  readonly #plan: Plan;
  readonly #catalog: Catalog;
  readonly #params: Params;

  constructor(plan: Plan, catalog: Catalog, params: Params) {
    this.#plan = plan;
    this.#catalog = catalog;
    this.#params = params;
  }

  /** Params of another type than their place, and those that no place names. */
  get issues(): readonly ParamIssue[] {
    const places = this.#plan.slots.flatMap(({ operand }) =>
      'source' in operand && operand.source === 'param' ? [operand] : [],
    );
    return Object.entries(this.#params).flatMap(([name, value]) => {
      const own = places.filter((place) => place.name === name);
      if (own.length === 0) return [{ name, message: `the filter names no \`$${name}\`` }];
      const unfit = own.find(({ type, list }) => !fits(value, type, list));
      return unfit === undefined ? [] : [{ name, message: expectedAt(unfit) }];
    });
  }

  /** The condition on the row that is named `alias`. */
  where(alias: string, { auth, now }: FilterRequest, visibility: Visibility): Sql {
    const binding = bind(this.#plan, { auth, query: {}, params: this.#params, now });
    const { states, decided } = binding;
    const signature = { states, decided };
    const cond = lower(this.#plan.tree, { catalog: this.#catalog, signature, roots: STORED_ROOTS, visibility });
    settleNow(this.#plan, binding);
    return whereOf(cond, { alias, inUnion: false, visibility }).fill(binding.values);
  }
}

function fits(value: unknown, type: ValueType, list: boolean): boolean {
  if (value === null) return true;
  if (!list) return readJson(type, value) !== undefined;
  return Array.isArray(value) && value.every((element) => element === null || readJson(type, element) !== undefined);
}

interface ParamType {
  readonly type: ValueType;
  readonly list: boolean;
}

function expectedAt({ type, list }: ParamType): string {
  const what = type === 'float' ? 'number' : describeType(type);
  return list ? `expected a list whose elements are of the type ${what}` : `expected ${what}`;
}
