/**
 * The query strings of records: the window, the exact filters and the expanded relations of a list, and
 * `expand` beside one record. Every key is read; one that cannot be taken exactly as meant rejects the
 * request. Not a route.
 */
import type { Context } from 'koa';
import { hintOf, nearest } from '../../../../grammar/suggest.ts';
import type { OperationParameter } from '../../../describe/operation.ts';
import { type QueryPair, queryOf } from '../../../http/request.ts';
import { isOpaque } from '../../../policy/scalar-types.ts';
import {
  type ErrorDetail,
  echo,
  MAX_SHOWN_ERRORS,
  MAX_SUGGESTIONS,
  Problem,
  type ProblemCode,
  UNSHOWN_ERROR,
} from '../../../problem.ts';
import type { ExactFilter, ListRequest } from '../../../records/page/page-plan.ts';
import { FIELD_KINDS, type FieldKind, keyKindIn, keyKindOf } from '../../../schema/fields/index.ts';
import { type FilterKey, filterKeysOf, neededTenant } from '../../../schema/model/filter-keys.ts';
import {
  type IntRange,
  LIST_WORDS,
  PAGE_LIMIT,
  PAGE_OFFSET,
  QUERY_WORDS,
} from '../../../schema/model/list-parameters.ts';
import type { Collection, Field, Relation, Schema } from '../../../schema/model/model.ts';
import { noRelation } from './query-errors.ts';
import { isQueryWord, queryOfWords } from './query-words.ts';

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
 * `filter_duplicate_key`: all errors at once, under the code of the first. Else `filter_required`. `filter_invalid` comes before all.
 */
export function listRequestOf(pairs: readonly QueryPair[], collection: Collection, schema: Schema): ListRequest {
  const errors: ErrorDetail[] = [];
  const limit = readInteger(pairs, LIMIT, errors);
  const offset = readInteger(pairs, OFFSET, errors);
  const relations = readExpand(pairs, collection, errors);
  const found: FoundFilters = { exact: [], errors, hasWords: false };
  readFilters(pairs, { collection, schema, words: LIST_WORDS }, found);
  const { exact } = found;
  const query = found.hasWords ? queryOfWords({ pairs, schema, collection, errors }) : undefined;
  if (errors.length === 0 && collection.tenantLayout !== null) requireTenant({ exact, ...query }, collection, errors);
  throwErrors(errors);
  return { limit, offset, expands: relations.map((relation) => ({ relation, expands: [] })), exact, ...query };
}

/**
 * The filters of a stream of changes, which has no window: `since` is its position.
 * Throws `invalid_parameter` and the errors of filters.
 */
export function feedFiltersOf(
  pairs: readonly QueryPair[],
  collection: Collection,
  schema: Schema,
): readonly ExactFilter[] {
  const errors: ErrorDetail[] = [];
  const isWord = (key: string): boolean => LIST_WORDS.includes(key) || isQueryWord(key);
  for (const key of new Set(pairs.map((pair) => pair.key).filter(isWord))) {
    const detail = `a stream of changes takes no \`${echo(key)}\`; remove it`;
    errors.push({ parameter: key, code: 'invalid_parameter', detail });
  }
  const found: FoundFilters = { exact: [], errors, hasWords: false };
  readFilters(
    pairs.filter(({ key }) => !FEED_WORDS.includes(key)),
    { collection, schema, words: FEED_WORDS },
    found,
  );
  if (errors.length === 0 && collection.tenantLayout !== null) requireTenant(found, collection, errors);
  throwErrors(errors);
  return found.exact;
}

type FilteredList = Pick<ListRequest, 'exact' | 'filter'>;

function requireTenant({ exact = [], filter }: FilteredList, collection: Collection, errors: ErrorDetail[]): void {
  const tenant = neededTenant(collection);
  const isGiven = exact.some((each) => each.kind === 'belongs_to' && each.relation.name === tenant);
  if (tenant === undefined || isGiven || filter?.requires(tenant) === true) return;
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

// ---------------------------------------------------------------- exact filters

interface FilteredCollection {
  readonly schema: Schema;
  readonly collection: Collection;
}

interface FilteredRequest extends FilteredCollection {
  /** The keys that it reads besides filters. */
  readonly words: readonly string[];
}

interface FoundFilters {
  readonly exact: ExactFilter[];
  readonly errors: ErrorDetail[];
  /** There are words of a query. */
  hasWords: boolean;
}

function readFilters(pairs: readonly QueryPair[], of: FilteredRequest, found: FoundFilters): void {
  const { collection } = of;
  const { exact, errors } = found;
  const keys = filterKeysOf(collection);
  const seen = new Set<string>();
  for (const { key, value } of pairs) {
    if (PLAIN_WORDS.includes(key)) continue;
    const filterKey = keys.get(key);
    if (filterKey === undefined && isQueryWord(key)) {
      found.hasWords = true;
      continue;
    }
    const isRepeated = seen.has(key);
    if (filterKey !== undefined) seen.add(key);
    const filter =
      filterKey === undefined || value === undefined || isRepeated ? undefined : readFilter(filterKey, of, value);
    if (filter !== undefined) exact.push(filter);
    else if (errors.length >= MAX_SHOWN_ERRORS) errors.push(UNSHOWN_ERROR);
    else if (filterKey === undefined) errors.push(unknownFilter(key, of, errors.length < MAX_SUGGESTIONS));
    else errors.push(isRepeated ? repeatedKey(filterKey) : invalidValue(filterKey, of, value));
  }
}

/** The keys of a stream's query string that are not filters. */
const FEED_WORDS = ['since'];
/** The words that every list reads. */
const PLAIN_WORDS = LIST_WORDS.filter((word) => !QUERY_WORDS.includes(word));

/** Undefined: the text is not a value of the key's type. */
function readFilter(filterKey: FilterKey, of: FilteredCollection, text: string): ExactFilter | undefined {
  if (filterKey.kind === 'field') return readFieldFilter(filterKey.field, text);
  const id = idsFilter(filterKey, of).fromQuery(text);
  if (id === undefined) return undefined;
  if (filterKey.kind === 'id') return { kind: 'id', value: id };
  const { relation } = filterKey;
  switch (relation.kind) {
    case 'belongs_to':
      return { kind: 'belongs_to', relation, value: id };
    case 'has_one':
      return { kind: 'has_one', relation, id: String(id) };
    case 'has_many':
    case 'many_to_many':
      return { kind: 'any', relation, id: String(id) };
  }
}

/** The form of the ids that the key takes. */
const idsFilter = (
  key: Exclude<FilterKey, { kind: 'field' }>,
  { schema, collection }: FilteredCollection,
): FieldKind => (key.kind === 'id' ? keyKindOf(collection) : keyKindIn(schema, key.relation.collection));

function readFieldFilter(field: Field, text: string): ExactFilter | undefined {
  const value = FIELD_KINDS[field.type].fromQuery(field.lower ? text.toLowerCase() : text);
  if (value === undefined) return undefined;
  if (field.enum !== undefined && !field.enum.includes(value as string | number)) return undefined;
  return { kind: 'field', field, value };
}

const repeatedKey = ({ key }: FilterKey): ErrorDetail => ({
  parameter: key,
  code: 'filter_duplicate_key',
  detail: `the filter \`${key}\` is given more than once`,
});

function invalidValue(filterKey: FilterKey, of: FilteredCollection, value: QueryPair['value']): ErrorDetail {
  const expected = value === undefined ? PERCENT_ENCODED : expectedForm(filterKey, of);
  const detail = `\`${filterKey.key}\` must be ${expected}`;
  return { parameter: filterKey.key, code: 'filter_invalid_value', detail };
}

const PERCENT_ENCODED = 'percent-encoded UTF-8, in which `%` itself is `%25`';

function expectedForm(filterKey: FilterKey, of: FilteredCollection): string {
  if (filterKey.kind !== 'field') return idsFilter(filterKey, of).expected;
  const { type, enum: allowed } = filterKey.field;
  return allowed === undefined
    ? FIELD_KINDS[type].expected
    : `one of ${allowed.map((value) => `\`${value}\``).join(', ')}`;
}

/** The words that lists of other systems read. */
const FOREIGN_WORDS: ReadonlyMap<string, string> = new Map([
  ...['skip', 'start', 'from'].map((word) => [word, 'offset'] as const),
  ...['perpage', 'pagesize', 'size', 'take', 'top', 'first', 'max'].map((word) => [word, 'limit'] as const),
  ...['order', 'orderby', 'sortby', 'ordering'].map((word) => [word, 'sort'] as const),
  ...['q', 'where', 'search', 'query'].map((word) => [word, 'filter'] as const),
  ...['include', 'populate', 'with', 'embed'].map((word) => [word, 'expand'] as const),
  ['select', 'fields'],
  ['after', 'cursor'],
]);

const PAGE_ADVICE =
  '; a page begins at `offset`, the number of records before it, or at `cursor`, the `page.next_cursor` of the page before';

function unknownFilter(key: string, of: FilteredRequest, suggest: boolean): ErrorDetail {
  const { collection, words } = of;
  const near = suggest ? nearKey(key, of) : undefined;
  const advice = (words === LIST_WORDS ? listAdvice(key, collection) : undefined) ?? hintOf(near);
  const detail = `\`${collection.name}\` has no filter \`${echo(key)}\`${advice}`;
  return { parameter: key, code: 'filter_unknown_key', detail };
}

function nearKey(key: string, { collection, words }: FilteredRequest): string | undefined {
  const foreign = FOREIGN_WORDS.get(key.toLowerCase().replaceAll(/[_-]/g, ''));
  if (foreign !== undefined && words.includes(foreign)) return foreign;
  return nearest(key, [...words, ...filterKeysOf(collection).keys()]);
}

/** Advice about a key that a list does not have. */
function listAdvice(key: string, { name, fields, softDelete }: Collection): string | undefined {
  const whole = fields.get(key.split('.', 1)[0]!);
  // Values with parts are asked for these, by an expression.
  if (whole !== undefined && isOpaque(whole.type))
    return `; ask for its values by an expression, such as \`filter=${whole.name} is not null\``;
  if (key.toLowerCase() === 'page') return PAGE_ADVICE;
  if (key.toLowerCase() === 'deleted' && softDelete !== undefined)
    return `; \`POST /api/${name}/query\` with \`"deleted": true\` finds deleted records`;
  return undefined;
}

// ---------------------------------------------------------------- expand

/** Throws `invalid_parameter` and `unknown_expand`. */
export function expandOf(ctx: Context, collection: Collection): readonly Relation[] {
  const errors: ErrorDetail[] = [];
  const relations = readExpand(queryOf(ctx), collection, errors);
  throwErrors(errors);
  return relations;
}

function readExpand(pairs: readonly QueryPair[], collection: Collection, errors: ErrorDetail[]): readonly Relation[] {
  const given = pairs.filter(({ key }) => key === 'expand');
  if (given.length === 0) return [];
  if (given.length > 1) {
    const detail = '`expand` is given more than once; join the names by commas';
    errors.push({ parameter: 'expand', code: 'invalid_parameter', detail });
    return [];
  }
  return expandedRelations((given[0]!.value ?? '').split(','), collection, errors);
}

/** Stops at the first error, so it looks at one name more than the collection has relations, at most. */
function expandedRelations(
  names: readonly string[],
  collection: Collection,
  errors: ErrorDetail[],
): readonly Relation[] {
  const relations = new Set<Relation>();
  for (const name of names) {
    const relation = collection.relations.get(name);
    if (relation === undefined || relations.has(relation)) {
      const near = name === '' ? undefined : nearest(name, collection.relations.keys());
      const unknown = name === '' ? '`expand` holds an empty name' : noRelation(collection, name, near);
      const detail = relation === undefined ? unknown : `\`expand\` names \`${name}\` twice`;
      errors.push({ parameter: 'expand', code: 'unknown_expand', detail });
      return [];
    }
    relations.add(relation);
  }
  return [...relations];
}

/** All at once, under the code of the first. */
function throwErrors(errors: readonly ErrorDetail[]): void {
  const [first] = errors;
  if (first === undefined) return;
  throw new Problem(first.code as ProblemCode, first.detail, { errors });
}
