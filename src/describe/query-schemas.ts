/** JSON Schemas of queries: what a body takes, and the page that answers it. */

import { DELETED_AT } from '../schema/model/kept/soft-delete.ts';
import {
  AGGREGATE_LIMIT,
  EXPAND_LIMIT,
  type IntRange,
  MOST_GROUPS,
  MOST_MEASURES,
  MOST_SORTS,
  PAGE_LIMIT,
  PAGE_OFFSET,
  PERIODS,
  WRITE_LIMIT,
} from '../schema/model/list-parameters.ts';
import type { Relation } from '../schema/model/model.ts';
import { RECORD_CAPABILITIES } from './capability-schemas.ts';
import { collectionIn, record, ref, selectionName, selectionSchema } from './collection-schemas.ts';
import {
  closed,
  type Json,
  type OperationParameter,
  type OperationScope,
  object,
  type Shape,
  TEXT,
  TIMESTAMP,
} from './operation.ts';

const NAMES: Json = { type: 'array', items: TEXT };
const SCALAR: Json = { type: ['string', 'number', 'boolean', 'null'] };

/** The filter of a query, and of a stream of changes. */
export const QUERY_FILTER: Json = {
  filter: {
    ...TEXT,
    description: 'An expression over the record, at most 4 KiB: `status = "open" and owner.name contains $q`.',
  },
  params: {
    type: 'object',
    description: 'Values for the `$name`s of the filter.',
    additionalProperties: { anyOf: [SCALAR, { type: 'array', items: SCALAR }] },
  },
};

/** Keys that the query itself and the expand of a to-many share. */
const FILTERED: Json = {
  ...QUERY_FILTER,
  sort: {
    ...NAMES,
    maxItems: MOST_SORTS,
    description:
      'Fields, `-` if descending, also through to-one relations; `name:text` in the order of people, `at:from(52.1 4.3)` by distance. Nulls are last.',
  },
};

const intSchema = ({ min, max }: IntRange): Json => ({ type: 'integer', minimum: min, maximum: max });

export const queryBody: Shape = (scope) => {
  const { relations, softDelete } = collectionIn(scope);
  const properties: Json = {
    ...FILTERED,
    limit: intSchema(PAGE_LIMIT),
    cursor: {
      type: ['string', 'null'],
      description: '`next_cursor` of the page before. Not together with `offset`.',
    },
    offset: intSchema(PAGE_OFFSET),
    fields: { ...NAMES, description: 'Members of the record to return; the id always comes.' },
    ...(relations.size === 0 ? {} : { expand: expandSchema([...relations.values()], scope) }),
    count: { type: 'string', enum: ['none', 'exact', 'estimated'] },
    capabilities: {
      type: 'boolean',
      description: 'Each record carries `can`: whether you may update and delete it.',
    },
    ...(softDelete === undefined ? {} : { deleted: DELETED }),
  };
  return closed(properties, { examples: [{ sort: ['-id'], limit: PAGE_LIMIT.default }] });
};

const SKIP_REFUSED: Json = {
  type: 'boolean',
  examples: [false],
  description: 'Leaves out the records that the rules refuse, where one of them would refuse all.',
};
/** The example of a write by filter changes nothing: a person who presses Send in the console may not have read it. */
const NO_RECORD: Json = {
  filter: { ...(QUERY_FILTER.filter as Json), examples: ['id in $ids'] },
  params: { ...(QUERY_FILTER.params as Json), examples: [{ ids: [] }] },
};
/** The body of a write by filter. */
export const matchingBody =
  (data?: Shape): Shape =>
  (scope) => {
    const own = data === undefined ? {} : { data: data(scope) };
    const limit = { ...intSchema(WRITE_LIMIT), examples: [WRITE_LIMIT.default] };
    return object({ ...NO_RECORD, limit, skip_refused: SKIP_REFUSED, ...own }, ['params', 'limit', 'skip_refused']);
  };
export const matchingAnswer: Shape = () => {
  const count = (description: string): Json => ({ type: 'integer', minimum: 0, description });
  const matched = count('The records that you may list and that match, up to `limit`.');
  return object({ data: object({ matched, changed: count('The records that were written.') }) });
};

const DELETED: Json = {
  type: 'boolean',
  description: 'Finds deleted records, with `deleted_at`, under the rules for `restore`.',
};

function expandSchema(relations: readonly Relation[], scope: OperationScope): Json {
  scope.define('QueryExpand', { anyOf: [{ const: true }, EXPANDED] });
  const properties = Object.fromEntries(relations.map(({ name }) => [name, ref('QueryExpand')]));
  return closed(properties, { description: 'Relations whose records come along.' });
}

const EXPANDED: Json = closed(
  {
    ...FILTERED,
    limit: intSchema({ ...EXPAND_LIMIT, min: 0 }),
    count: { type: 'boolean', description: 'Adds the number of the related records; `limit` may then be 0.' },
    fields: NAMES,
    expand: { type: 'object', additionalProperties: ref('QueryExpand') },
  },
  { description: '`filter`, `params`, `sort`, `limit` and `count` for relations to many records only.' },
);

export const queryPage: Shape = (scope) =>
  object({ data: { type: 'array', items: selected(scope) }, page: scope.define('QueryPage', QUERY_PAGE) });

/** A record with the members that were asked for. */
function selected(scope: OperationScope): Json {
  const collection = collectionIn(scope);
  const selection = selectionSchema(collection, scope);
  const properties = {
    ...(selection.properties as Json),
    can: RECORD_CAPABILITIES,
    ...(collection.softDelete === undefined ? {} : { [DELETED_AT]: TIMESTAMP }),
  };
  return scope.define(selectionName(scope.typeName(collection.name)), { ...selection, properties });
}

/** `fields` makes selections of the records. */
export const listPage: Shape = (scope) =>
  object({ data: { type: 'array', items: { anyOf: [record(scope), selected(scope)] } }, page: ref('Page') });

const listWord = (name: string, description: string, schema: Json = TEXT): OperationParameter => ({
  name,
  in: 'query',
  description,
  schema,
});
const joinedWord = (name: string, description: string): OperationParameter => ({
  ...listWord(name, description, NAMES),
  style: 'form',
  explode: false,
});

/** The words of a query that a list takes in its query string. */
export const queryParameters: readonly OperationParameter[] = [
  listWord(
    'filter',
    'A condition that the records match beside the exact filters: `status = "open" and owner.name contains $q`.',
  ),
  {
    ...listWord('params', '`param.q` is the value of `$q` in `filter`; several of one name are a list.'),
    style: 'form',
    explode: true,
    schema: { type: 'object', patternProperties: { '^param\\.': TEXT }, additionalProperties: false },
  },
  joinedWord(
    'sort',
    'Fields, `-` before one that is descending, also through to-one relations; `name:text` in the order of people. Nulls are last.',
  ),
  joinedWord('fields', 'Members of the record to return; the id always comes.'),
  listWord('cursor', '`next_cursor` of the page before, or nothing for the first page. Not together with `offset`.'),
  listWord('count', 'Adds `page.total`.', { type: 'string', enum: ['none', 'exact', 'estimated'] }),
];

const QUERY_PAGE: Json = object(
  {
    limit: { type: 'integer' },
    has_more: { type: 'boolean' },
    next_cursor: { type: ['string', 'null'], description: 'Where the next page begins.' },
    total: { type: 'integer', description: 'With `count`.' },
    total_is_estimate: { type: 'boolean', description: 'With `count: "estimated"`.' },
  },
  ['total', 'total_is_estimate'],
);

// ---------------------------------------------------------------- aggregates

const PERIOD_LIST = PERIODS.map((period) => `\`${period}(f)\``).join(', ');

export const aggregateBody: Shape = (scope) => {
  const measure: Json = {
    type: 'string',
    pattern: '^(count|(count\\(distinct |(sum|avg|min|max)\\()[A-Za-z0-9_.]+\\))$',
  };
  const properties: Json = {
    filter: FILTERED.filter,
    params: FILTERED.params,
    group_by: {
      ...NAMES,
      maxItems: MOST_GROUPS,
      description: `Fields and belongs_to names, also through relations to one record (\`owner.team\`), and periods of dates: ${PERIOD_LIST}.`,
    },
    zone: { ...TEXT, description: 'The time zone of the periods, as IANA names it; default: UTC.' },
    measures: {
      type: 'object',
      description:
        'By name: `count`, `count(distinct f)`, `sum(f)`, `avg(f)`, `min(f)`, `max(f)`, or `of` and a filter `where`. May be left out where there are groups.',
      maxProperties: MOST_MEASURES,
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]{0,47}$' },
      additionalProperties: { anyOf: [measure, closed({ of: measure, where: TEXT }, { required: ['of'] })] },
    },
    having: { ...TEXT, description: 'A filter over the measures, such as `n > 1`.' },
    sort: {
      ...NAMES,
      maxItems: MOST_SORTS,
      description: 'Names of groups and measures, `-` before one that is descending.',
    },
    limit: intSchema(AGGREGATE_LIMIT),
  };
  const few = [...collectionIn(scope).fields.values()].find((field) => field.enum !== undefined);
  const groups = few === undefined ? {} : { group_by: [few.name] };
  return closed(properties, { examples: [{ ...groups, measures: { records: 'count' } }] });
};

/** The members of a row are those that were asked for. */
export const aggregateRows: Shape = (scope) =>
  object({
    data: {
      type: 'array',
      items: { type: 'object', description: 'The groups and measures; `errors` names measures that are out of range.' },
    },
    page: scope.define('AggregatePage', object({ has_more: { type: 'boolean' } })),
  });
