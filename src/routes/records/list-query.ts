/**
 * The query string of a list. Every key is read; one that cannot be taken exactly as meant rejects
 * the request. Not a route.
 */
import type { OperationParameter } from '../../describe/operation.ts';
import type { QueryPair } from '../../http/request.ts';
import type { ErrorDetail } from '../../problem.ts';
import type { Filter } from '../../records/page/exact-filters.ts';
import { type IntRange, PAGE_LIMIT, PAGE_OFFSET } from '../../schema/model/list-parameters.ts';
import { type Collection, neededTenant, type Relation } from '../../schema/model/model.ts';
import { readExpand, throwErrors } from './expand.ts';
import { readFilters } from './filters.ts';

export interface ListQuery {
  readonly limit: number;
  readonly offset: number;
  readonly relations: readonly Relation[];
  readonly filters: readonly Filter[];
}

interface IntParameter extends IntRange {
  readonly key: string;
  readonly description: string;
}
const LIMIT: IntParameter = { key: 'limit', description: 'The most records to return.', ...PAGE_LIMIT };
const OFFSET: IntParameter = { key: 'offset', description: 'How many records to skip.', ...PAGE_OFFSET };

export const rangeParameters: readonly OperationParameter[] = [LIMIT, OFFSET].map((range) => ({
  name: range.key,
  in: 'query',
  description: range.description,
  schema: { type: 'integer', minimum: range.min, maximum: range.max, default: range.default },
}));

/**
 * Throws `invalid_parameter`, `unknown_expand`, `filter_unknown_key`, `filter_invalid_value`,
 * `filter_duplicate_key`: all errors at once, under the code of the first. Else `filter_required`.
 */
export function readListQuery(pairs: readonly QueryPair[], collection: Collection): ListQuery {
  const errors: ErrorDetail[] = [];
  const limit = readInteger(pairs, LIMIT, errors);
  const offset = readInteger(pairs, OFFSET, errors);
  const relations = readExpand(pairs, collection, errors);
  const filters = readFilters(pairs, collection, errors);
  if (errors.length === 0) requireTenant(filters, collection, errors);
  throwErrors(errors);
  return { limit, offset, relations, filters };
}

function requireTenant(filters: readonly Filter[], collection: Collection, errors: ErrorDetail[]): void {
  const tenant = neededTenant(collection);
  const isGiven = filters.some((filter) => filter.kind === 'belongs_to' && filter.relation.name === tenant);
  if (tenant === undefined || isGiven) return;
  const detail = `a list of \`${collection.name}\` is of one \`${tenant}\`; add the filter \`${tenant}=<id>\``;
  errors.push({ parameter: tenant, code: 'filter_required', detail });
}

function readInteger(
  pairs: readonly QueryPair[],
  { key, min, max, default: otherwise }: IntParameter,
  errors: ErrorDetail[],
): number {
  const given = pairs.filter((pair) => pair.key === key);
  if (given.length === 0) return otherwise;
  const text = given[0]!.value ?? '';
  const value = /^(?:0|[1-9][0-9]{0,7})$/.test(text) ? Number(text) : Number.NaN;
  if (given.length === 1 && value >= min && value <= max) return value;
  const detail =
    given.length > 1 ? `\`${key}\` is given more than once` : `\`${key}\` must be an int from ${min} to ${max}`;
  errors.push({ parameter: key, code: 'invalid_parameter', detail });
  return otherwise;
}
