/** The filters of a list's query string. Not a route. */
import { nearest } from '../../../grammar/suggest.ts';
import type { QueryPair } from '../../http/request.ts';
import { type ErrorDetail, echo, MAX_SHOWN_ERRORS, MAX_SUGGESTIONS, UNSHOWN_ERROR } from '../../problem.ts';
import type { Filter } from '../../records/page/exact-filters.ts';
import { FIELD_KINDS, ID_KIND } from '../../schema/fields/index.ts';
import { type FilterKey, filterKeysOf } from '../../schema/model/filter-keys.ts';
import { LIST_WORDS } from '../../schema/model/list-parameters.ts';
import type { Collection, Field } from '../../schema/model/model.ts';

export function readFilters(
  pairs: readonly QueryPair[],
  collection: Collection,
  errors: ErrorDetail[],
): readonly Filter[] {
  const keys = filterKeysOf(collection);
  const filters: Filter[] = [];
  const seen = new Set<string>();
  for (const { key, value } of pairs) {
    if (LIST_WORDS.includes(key)) continue;
    const filterKey = keys.get(key);
    const isRepeated = seen.has(key);
    if (filterKey !== undefined) seen.add(key);
    const filter =
      filterKey === undefined || value === undefined || isRepeated ? undefined : readFilter(filterKey, value);
    if (filter !== undefined) filters.push(filter);
    else if (errors.length >= MAX_SHOWN_ERRORS) errors.push(UNSHOWN_ERROR);
    else if (filterKey === undefined) errors.push(unknownFilter(key, collection, errors.length < MAX_SUGGESTIONS));
    else errors.push(isRepeated ? repeatedKey(filterKey) : invalidValue(filterKey));
  }
  return filters;
}

/** Undefined: the text is not a value of the key's type. */
function readFilter(filterKey: FilterKey, text: string): Filter | undefined {
  if (filterKey.kind === 'field') return readFieldFilter(filterKey.field, text);
  const id = ID_KIND.fromQuery(text) as string | undefined;
  if (id === undefined) return undefined;
  if (filterKey.kind === 'id') return { kind: 'id', value: id };
  const { relation } = filterKey;
  switch (relation.kind) {
    case 'belongs_to':
      return { kind: 'belongs_to', relation, id };
    case 'has_one':
      return { kind: 'has_one', relation, id };
    case 'has_many':
    case 'many_to_many':
      return { kind: 'any', relation, id };
  }
}

function readFieldFilter(field: Field, text: string): Filter | undefined {
  const value = FIELD_KINDS[field.type].fromQuery(text);
  if (value === undefined) return undefined;
  if (field.enum !== undefined && !field.enum.includes(value as string | number)) return undefined;
  return { kind: 'field', field, value };
}

const repeatedKey = ({ key }: FilterKey): ErrorDetail => ({
  parameter: key,
  code: 'filter_duplicate_key',
  detail: `the filter \`${key}\` is given more than once`,
});

function invalidValue(filterKey: FilterKey): ErrorDetail {
  const detail = `\`${filterKey.key}\` must be ${expectedOf(filterKey)}`;
  return { parameter: filterKey.key, code: 'filter_invalid_value', detail };
}

function expectedOf(filterKey: FilterKey): string {
  if (filterKey.kind !== 'field') return ID_KIND.expected;
  const { type, enum: allowed } = filterKey.field;
  return allowed === undefined
    ? FIELD_KINDS[type].expected
    : `one of ${allowed.map((value) => `\`${value}\``).join(', ')}`;
}

function unknownFilter(key: string, collection: Collection, suggest: boolean): ErrorDetail {
  const near = suggest ? nearest(key, [...LIST_WORDS, ...filterKeysOf(collection).keys()]) : undefined;
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  const detail = `\`${collection.name}\` has no filter \`${echo(key)}\`${hint}`;
  return { parameter: key, code: 'filter_unknown_key', detail };
}
