/** The request of a feed: what its query or its body asks for, checked against the schema. Not a route. */

import type { QueryPair } from '../../http/request.ts';
import { invariant } from '../../invariant.ts';
import { compileFilter, equalityFilter, type Filter, type MemberValue } from '../../policy/filters/filter.ts';
import { type ErrorDetail, Problem, pointerPart } from '../../problem.ts';
import type { RelatedFilter } from '../../records/page/related-filters.ts';
import type { Members } from '../../records/record-shape.ts';
import { isObject } from '../../records/write/input.ts';
import { relationKeysOf } from '../../schema/model/filter-keys.ts';
import { unloggedBehindFilter } from '../../schema/model/logged-tables.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { QueryBody } from '../records/query/query-body.ts';
import { QueryErrors } from '../records/query/query-errors.ts';
import { feedFiltersOf } from '../records/query/query-string.ts';

/** A feed that a request asks for. */
export interface AskedFeed {
  readonly collection: Collection;
  readonly filters: readonly Filter[];
  readonly members: Members | undefined;
  /** Equal for requests of the same records and fields. */
  readonly query: string;
  readonly since: string | undefined;
}

interface FeedPlace {
  readonly collection: Collection;
  readonly schema: Schema;
}

const FEED_KEYS = ['filter', 'params', 'fields', 'since'];

/** Throws `invalid_parameter`, `filter_invalid`, `filter_required` and the errors of filters. */
export function queriedFeed(pairs: readonly QueryPair[], collection: Collection, schema: Schema): AskedFeed {
  const own: MemberValue[] = [];
  const filters: Filter[] = [];
  for (const exact of feedFiltersOf(pairs, collection, schema)) {
    if (exact.kind === 'has_one' || exact.kind === 'any') filters.push(relatedFilter(exact, { collection, schema }));
    else own.push(exact);
  }
  if (own.length > 0) filters.push(equalityFilter(own, { catalog: schema, collection: collection.name }));
  const since = pairs.filter(({ key }) => key === 'since');
  if (since.length > 1) throw repeatedSince();
  const query = JSON.stringify(pairs.filter(({ key }) => key !== 'since').map(({ key, value }) => [key, value]));
  return { collection, filters, members: undefined, query, since: since[0]?.value };
}

/** A has_one is the record of this id, or a to-many has it. */
function relatedFilter({ kind, relation, id }: RelatedFilter, { collection, schema }: FeedPlace): Filter {
  const { name } = relation;
  const text = kind === 'has_one' ? `${name} = $id` : `${name} contains $id`;
  const { filter } = compileFilter(text, { catalog: schema, collection: collection.name, params: { id } });
  invariant(filter !== undefined, `the filter \`${text}\` compiles`);
  const unlogged = unloggedBehindFilter(filter, collection.name, schema);
  if (unlogged !== undefined) throw notLogged({ parameter: relationKeysOf(relation)[0]! }, unlogged);
  return filter.ofTexts();
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
  /** The errors of all feeds of the body; their filters are of limited length together. */
  readonly errors?: QueryErrors;
}

/** Throws `filter_invalid`, `filter_required`, `validation_failed`. */
export function describedFeed(
  { given, more = [], path = [], errors = new QueryErrors() }: FeedBody,
  schema: Schema,
  collection: Collection,
): AskedFeed {
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
  const unlogged = filter && unloggedBehindFilter(filter, collection.name, schema);
  if (unlogged !== undefined)
    throw notLogged({ pointer: [...path, 'filter'].map((part) => `/${pointerPart(part)}`).join('') }, unlogged);
  const { filter: text = null, params = null, fields = null } = body;
  const query = JSON.stringify([text, params, fields]);
  const filters = filter === undefined ? [] : [filter];
  return { collection, filters, members, query, since: since as string | undefined };
}

/** The filter depends on records whose changes no log holds. */
function notLogged(place: Pick<ErrorDetail, 'pointer' | 'parameter'>, unlogged: string): Problem {
  const detail =
    `the filter reads \`${unlogged}\`, whose changes are not logged; declare \`changes: true\` on \`${unlogged}\`, ` +
    'or remove what leads there';
  return new Problem('filter_invalid', detail, { errors: [{ ...place, code: 'not_logged', detail }] });
}
