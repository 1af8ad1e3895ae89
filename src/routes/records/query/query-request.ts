/** The request of a query: its body, checked against the schema. Not a route. */
import type { ListRequest } from '../../../records/page/page-plan.ts';
import { type Data, isObject } from '../../../records/write/input.ts';
import { PAGE_LIMIT, PAGE_OFFSET } from '../../../schema/model/list-parameters.ts';
import type { Collection, Schema } from '../../../schema/model/model.ts';
import { pathKey, QueryBody } from './query-body.ts';
import { QueryErrors } from './query-errors.ts';
import { ExpandReader } from './query-expand.ts';

const QUERY_KEYS = [
  'filter',
  'params',
  'sort',
  'limit',
  'cursor',
  'offset',
  'fields',
  'expand',
  'count',
  'capabilities',
  'deleted',
];

/** Throws `filter_invalid`, `validation_failed` and `filter_required`. */
export function queryRequestOf(given: unknown, schema: Schema, collection: Collection): ListRequest {
  const errors = new QueryErrors();
  const isBody = isObject(given);
  if (!isBody) errors.add([], 'not_an_object', 'expected an object');
  const body = isBody ? given : {};
  const place = { schema, collection, errors };
  const reader = new QueryBody({ body, path: [] }, place);
  reader.allow(QUERY_KEYS);
  const isDeleted = reader.flag('deleted');
  const filter = reader.filterOfTenant();
  const sort = reader.sort();
  const limit = reader.integer('limit', PAGE_LIMIT);
  const offset = reader.integer('offset', PAGE_OFFSET);
  const after = cursorOf(reader, errors);
  const request = {
    filter,
    sort,
    limit,
    offset,
    members: reader.members(),
    expands: new ExpandReader().read(reader.value('expand'), ['expand'], place),
    count: reader.oneOf('count', ['none', 'exact', 'estimated']),
    capabilities: reader.flag('capabilities'),
  };
  errors.throwAny();
  const order = sort.map((sorting) => [pathKey(sorting), sorting.descending]);
  const query = JSON.stringify([
    body.filter ?? null,
    sortedParams(body.params),
    order,
    ...(isDeleted ? ['deleted'] : []),
  ]);
  return { ...request, cursors: { query, after }, isQuery: true };
}

function cursorOf(reader: QueryBody, errors: QueryErrors): string | undefined {
  const cursor = reader.value('cursor') ?? undefined;
  if (cursor === undefined) return undefined;
  if (typeof cursor !== 'string') return errors.add(['cursor'], 'wrong_type', 'expected a string or null');
  if (reader.value('offset') === undefined) return cursor;
  return errors.add(['cursor'], 'invalid_value', 'a cursor and an offset; expected one of them');
}

/** The order of keys does not matter. */
const sortedParams = (params: unknown): readonly unknown[] =>
  Object.entries((params ?? {}) as Data).sort(([a], [b]) => (a < b ? -1 : 1));
