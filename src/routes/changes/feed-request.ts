/** The request of a feed: what its query or its body asks for, checked against the schema. Not a route. */

import type { QueryPair } from '../../http/request.ts';
import { walksRelations } from '../../policy/analyse/policy-needs.ts';
import { equalityFilter, type Filter, type MemberValue } from '../../policy/filters/filter.ts';
import { type ErrorDetail, Problem, pointerPart } from '../../problem.ts';
import type { ExactFilter } from '../../records/page/page-plan.ts';
import type { Members } from '../../records/record-shape.ts';
import { isObject } from '../../records/write/input.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { QueryBody } from '../records/query/query-body.ts';
import { QueryErrors } from '../records/query/query-errors.ts';
import { feedFiltersOf } from '../records/query/query-string.ts';

/** A feed that a request asks for. */
export interface AskedFeed {
  readonly collection: Collection;
  readonly filter: Filter | undefined;
  readonly members: Members | undefined;
  /** Equal for requests of the same records and fields. */
  readonly query: string;
  readonly since: string | undefined;
}

const FEED_KEYS = ['filter', 'params', 'fields', 'since'];

/** Throws `invalid_parameter`, `filter_invalid`, `filter_required` and the errors of filters. */
export function queriedFeed(pairs: readonly QueryPair[], collection: Collection, schema: Schema): AskedFeed {
  const exact = feedFiltersOf(pairs, collection, schema);
  const own = exact.map((each) => ownMemberOfFilter(each));
  const filter = own.length === 0 ? undefined : equalityFilter(own, { catalog: schema, collection: collection.name });
  const since = pairs.filter(({ key }) => key === 'since');
  if (since.length > 1) throw repeatedSince();
  const query = JSON.stringify(pairs.filter(({ key }) => key !== 'since').map(({ key, value }) => [key, value]));
  return { collection, filter, members: undefined, query, since: since[0]?.value };
}

function ownMemberOfFilter(filter: ExactFilter): MemberValue {
  if (filter.kind !== 'has_one' && filter.kind !== 'any') return filter;
  const { name } = filter.relation;
  const detail = `a stream of changes follows no relation; \`${name}\` is held by other records`;
  throw new Problem('filter_invalid', detail, { errors: [{ parameter: name, code: 'not_logged', detail }] });
}

function repeatedSince(): Problem {
  const detail = '`since` is given more than once';
  return new Problem('invalid_parameter', detail, {
    errors: [{ parameter: 'since', code: 'invalid_parameter', detail }],
  });
}

interface FeedBody {
  readonly given: unknown;
  /** The keys that the body may have besides those of a feed. */
  readonly more?: readonly string[];
  readonly path?: readonly string[];
}

/** Throws `filter_invalid`, `filter_required`, `validation_failed`. */
export function describedFeed(
  { given, more = [], path = [] }: FeedBody,
  schema: Schema,
  collection: Collection,
): AskedFeed {
  const errors = new QueryErrors();
  const isBody = isObject(given);
  if (!isBody) errors.add(path, 'not_an_object', 'expected an object');
  const body = isBody ? given : {};
  const reader = new QueryBody({ body, path }, { schema, collection, errors });
  reader.allow([...more, ...FEED_KEYS]);
  const filter = reader.filterOfTenant();
  const members = reader.members();
  const since = body.since ?? undefined;
  if (since !== undefined && typeof since !== 'string')
    errors.add([...path, 'since'], 'wrong_type', 'expected a string');
  errors.throwAny();
  if (filter !== undefined) refuseWalks(filter, path);
  const { filter: text = null, params = null, fields = null } = body;
  const query = JSON.stringify([text, params, fields]);
  return { collection, filter, members, query, since: since as string | undefined };
}

/** No log holds the records that a filter walks to. */
function refuseWalks({ checked }: Filter, path: readonly string[]): void {
  if (!walksRelations(checked)) return;
  const detail =
    'the filter of a stream of changes compares members of the record itself; remove what follows relations';
  const error: ErrorDetail = {
    pointer: [...path, 'filter'].map((part) => `/${pointerPart(part)}`).join(''),
    code: 'not_logged',
    detail,
  };
  throw new Problem('filter_invalid', detail, { errors: [error] });
}
