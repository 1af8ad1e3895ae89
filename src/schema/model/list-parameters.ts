/**
 * The parameters of a list that are not filters, and the bounds of lists, queries and aggregates:
 * the routes, the OpenAPI document and the reserved names of members all read them here.
 */

export interface IntRange {
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

export const PAGE_LIMIT: IntRange = { min: 1, max: 100, default: 20 };
export const PAGE_OFFSET: IntRange = { min: 0, max: 1_000_000, default: 0 };
/** Related records of a has_many or many_to_many that a record shows. */
export const EXPAND_LIMIT: IntRange = { min: 1, max: 100, default: 100 };
/** The number of related records, beside them. */
export const countName = (relation: string): string => `${relation}_count`;
export const AGGREGATE_LIMIT: IntRange = { min: 1, max: 1_000, default: 100 };
/** Records that an update or a delete by filter writes. */
export const WRITE_LIMIT: IntRange = { min: 1, max: 1_000, default: 100 };
export const MOST_SORTS = 4;
export const MOST_GROUPS = 3;
export const MOST_MEASURES = 20;
/** The periods of dates that form groups. */
export const PERIODS = ['year', 'month', 'week', 'day', 'hour', 'weekday'] as const;
export type PeriodName = (typeof PERIODS)[number];

/** Keys of a list's query string that ask as a query does. */
export const QUERY_WORDS: readonly string[] = ['filter', 'sort', 'fields', 'cursor', 'count'];
/** `param.q` is the value of `$q` in the filter. */
export const PARAM_PREFIX = 'param.';
/** Keys of a list's query string that are not filters. No member has such a name. */
export const LIST_WORDS: readonly string[] = ['limit', 'offset', 'expand', ...QUERY_WORDS];
