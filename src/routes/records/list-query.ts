/** The query of a list. Every key is read, and whatever cannot be taken exactly as it is meant stops the request: nothing runs. */

import { nearest } from '../../../grammar/suggest.ts';
import type { QueryPair } from '../../http/query.ts';
import {
  echo,
  type Fault,
  MAX_SHOWN_FAULTS,
  MAX_SUGGESTIONS,
  Problem,
  type ProblemCode,
  UNSHOWN_FAULT,
} from '../../problem.ts';
import type { Collection } from '../../schema/model.ts';
import type { Filter } from '../../store/records/list.ts';
import { readExpand } from './expand.ts';
import { type FilterKey, filterKeysOf } from './filter-keys.ts';

export interface ListQuery {
  readonly limit: number;
  readonly offset: number;
  readonly expand: readonly string[];
  readonly filters: readonly Filter[];
}

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly otherwise: number;
}
const LIMIT: Bounds = { min: 1, max: 100, otherwise: 20 };
const OFFSET: Bounds = { min: 0, max: 1_000_000, otherwise: 0 };

const WORDS = new Set(['limit', 'offset', 'expand']);

/** Throws `invalid_parameter`, `unknown_expand`, `filter_unknown_key`, `filter_invalid_value`, `filter_duplicate_key`; all faults at once, under the code of the first. */
export function readListQuery(pairs: readonly QueryPair[], collection: Collection): ListQuery {
  const faults: Fault[] = [];
  const limit = readNumber(pairs, { key: 'limit', bounds: LIMIT, faults });
  const offset = readNumber(pairs, { key: 'offset', bounds: OFFSET, faults });
  const expand = readExpand(pairs, { collection, faults });
  const filters = readFilters(pairs, { collection, faults });
  throwFaults(faults);
  return { limit, offset, expand, filters };
}

export function throwFaults(faults: readonly Fault[]): void {
  const [first] = faults;
  if (first === undefined) return;
  throw new Problem(first.code as ProblemCode, first.detail, { errors: faults });
}

function readNumber(
  pairs: readonly QueryPair[],
  { key, bounds, faults }: { readonly key: string; readonly bounds: Bounds; readonly faults: Fault[] },
): number {
  const given = pairs.filter((pair) => pair.key === key);
  if (given.length === 0) return bounds.otherwise;
  const text = given[0]!.value ?? '';
  const value = /^(?:0|[1-9][0-9]{0,7})$/.test(text) ? Number(text) : Number.NaN;
  if (given.length === 1 && value >= bounds.min && value <= bounds.max) return value;
  const range = `a whole number from ${bounds.min} to ${bounds.max}`;
  const detail = given.length > 1 ? `\`${key}\` is given more than once` : `\`${key}\` must be ${range}`;
  faults.push({ parameter: key, code: 'invalid_parameter', detail });
  return bounds.otherwise;
}

function readFilters(
  pairs: readonly QueryPair[],
  { collection, faults }: { readonly collection: Collection; readonly faults: Fault[] },
): readonly Filter[] {
  const keys = filterKeysOf(collection);
  const filters: Filter[] = [];
  const seen = new Set<string>();
  for (const { key, value } of pairs) {
    if (WORDS.has(key)) continue;
    const filterKey = keys.get(key);
    const filter = value === undefined || seen.has(key) ? undefined : filterKey?.read(value);
    if (filter !== undefined) filters.push(filter);
    else if (faults.length >= MAX_SHOWN_FAULTS) faults.push(UNSHOWN_FAULT);
    else if (filterKey === undefined) faults.push(unknownKey(key, collection, faults.length < MAX_SUGGESTIONS));
    else faults.push(badFilter(filterKey, seen.has(key)));
    if (filterKey !== undefined) seen.add(key);
  }
  return filters;
}

const badFilter = ({ key, expected }: FilterKey, isRepeated: boolean): Fault =>
  isRepeated
    ? { parameter: key, code: 'filter_duplicate_key', detail: `the filter \`${key}\` is given more than once` }
    : { parameter: key, code: 'filter_invalid_value', detail: `\`${key}\` must be ${expected}` };

function unknownKey(key: string, collection: Collection, suggest: boolean): Fault {
  const near = suggest ? nearest(key, [...WORDS, ...filterKeysOf(collection).keys()]) : undefined;
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  const detail = `\`${collection.name}\` has no filter \`${echo(key)}\`${hint}`;
  return { parameter: key, code: 'filter_unknown_key', detail };
}
