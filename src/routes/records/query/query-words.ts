/**
 * The words of a query in the query string of a list: `filter`, `sort`, `fields`, `cursor`, `count`, and `param.<name>` for the params
 * of the filter. They mean what the same keys in the body of a query mean. Not a route.
 */
import type { QueryPair } from '../../../http/request.ts';
import { addError, type ErrorDetail, Problem } from '../../../problem.ts';
import type { ListRequest } from '../../../records/page/page-plan.ts';
import type { Data } from '../../../records/write/input.ts';
import { LIST_WORDS, PARAM_PREFIX, QUERY_WORDS } from '../../../schema/model/list-parameters.ts';
import type { Collection, Schema } from '../../../schema/model/model.ts';
import { pathKey, QueryBody } from './query-body.ts';
import { QueryErrors } from './query-errors.ts';

export const isQueryWord = (key: string): boolean => QUERY_WORDS.includes(key) || key.startsWith(PARAM_PREFIX);

/** Words that take several names, joined by commas. */
const JOINED: readonly string[] = ['sort', 'fields'];

export interface QueriedList {
  /** The whole query string. */
  readonly pairs: readonly QueryPair[];
  readonly schema: Schema;
  readonly collection: Collection;
  readonly errors: ErrorDetail[];
}

/**
 * The part of a list's request that its words of a query give. Throws `filter_invalid`, and `validation_failed` for a
 * value that the body of a query could not have either; reports other errors.
 */
export function queryOfWords({ pairs, schema, collection, errors }: QueriedList): Partial<ListRequest> {
  const reading = new QueryErrors();
  const words = pairs.filter(({ key }) => isQueryWord(key));
  const body = bodyOfWords(words, errors);
  const reader = new QueryBody({ body, path: [] }, { schema, collection, errors: reading });
  const filter = reader.filter((given) => given.ofTexts());
  const sort = reader.sort();
  const members = reader.members();
  // Undefined where no word counts, so that `Prefer` may.
  const count = body.count === undefined ? undefined : reader.oneOf('count', ['none', 'exact', 'estimated']);
  const after = body.cursor === '' ? undefined : (body.cursor as string | undefined);
  if (after !== undefined && pairs.some(({ key }) => key === 'offset'))
    reading.add(['cursor'], 'invalid_parameter', 'a cursor and an offset; expected one of them');
  throwWordErrors(reading, errors);
  const isQuery = filter !== undefined || sort.length > 0;
  return { filter, sort, members, count, isQuery, cursors: { query: cursorScope(pairs, sort.map(spelt)), after } };
}

type Sorted = NonNullable<ListRequest['sort']>[number];
const spelt = (sorting: Sorted): string => `${sorting.descending ? '-' : ''}${pathKey(sorting)}`;

/** A cursor leads from one page to another of the same scope. */
function cursorScope(pairs: readonly QueryPair[], sort: readonly string[]): string {
  const filters = pairs.filter(({ key }) => key === 'filter' || !LIST_WORDS.includes(key));
  return JSON.stringify([filters.map(({ key, value }) => [key, value]).sort(), sort]);
}

/** The words as the body of a query has them. A param that is given several times is a list. */
function bodyOfWords(words: readonly QueryPair[], errors: ErrorDetail[]): Data {
  const body: Record<string, unknown> = {};
  const params: Record<string, string | readonly string[]> = Object.create(null);
  for (const { key, value } of words) {
    if (value === undefined) addError(errors, invalidWord(key, `\`${key}\` is not UTF-8`));
    else if (key.startsWith(PARAM_PREFIX)) {
      const name = key.slice(PARAM_PREFIX.length);
      params[name] = name in params ? [params[name]!, value].flat() : value;
    } else if (Object.hasOwn(body, key)) addError(errors, invalidWord(key, `\`${key}\` is given more than once`));
    else body[key] = JOINED.includes(key) ? value.split(',') : value;
  }
  return Object.keys(params).length === 0 ? body : { ...body, params };
}

const invalidWord = (parameter: string, detail: string): ErrorDetail => ({
  parameter,
  code: 'invalid_parameter',
  detail,
});

/** `/params/q` → `param.q`, `/sort/0` → `sort` */
function inQueryString({ pointer = '', ...error }: ErrorDetail): ErrorDetail {
  const [, word = '', name = ''] = pointer.split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return { ...error, parameter: word === 'params' ? `${PARAM_PREFIX}${name}` : word };
}

/** Errors of the query string itself, which are reported already, decide about the status. */
function throwWordErrors({ filters, others }: QueryErrors, reported: ErrorDetail[]): void {
  const values = others.map(inQueryString);
  const [first, ...more] = filters.map(inQueryString);
  if (first !== undefined)
    throw new Problem('filter_invalid', first.detail, { errors: [first, ...more, ...reported, ...values] });
  const [wrong] = values;
  if (wrong !== undefined && reported.length === 0)
    throw new Problem('validation_failed', wrong.detail, { errors: values });
  for (const error of values) addError(reported, error);
}
