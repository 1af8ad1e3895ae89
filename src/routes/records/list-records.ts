import { expandParameter, filterParameters, tenantProblems } from '../../describe/collection-schemas.ts';
import { listPage, queryParameters } from '../../describe/query-schemas.ts';
import { sendJson } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { queryOf } from '../../http/request.ts';
import { between } from '../../records/json-pieces.ts';
import { route } from '../define-route.ts';
import { listRequestOf, rangeParameters } from './query/query-string.ts';

export const listRecords = route({
  method: 'GET',
  path: '/api/:collection',
  door: { action: 'list' },
  id: 'list',
  summary: 'List the records of {collection} that you may see',
  description:
    'In the order of their ids, which is the order of creation, or by `sort`. Filters match exactly, and all of them must match, as must `filter`.',
  parameters: [
    ...rangeParameters,
    expandParameter,
    ...queryParameters,
    filterParameters,
    {
      name: 'Prefer',
      in: 'header',
      description: '`count=exact` adds `page.total`.',
      schema: { type: 'string', examples: ['count=exact'] },
    },
  ],
  answers: { 200: { description: 'A page of records.', shape: listPage, headers: ['Preference-Applied'] } },
  problems: [
    'invalid_parameter',
    'unknown_expand',
    'filter_unknown_key',
    'filter_invalid_value',
    'filter_duplicate_key',
    'filter_invalid',
    'invalid_cursor',
    'validation_failed',
    'query_too_expensive',
    tenantProblems,
  ],
  async handle(ctx, { records, schema }) {
    const admission = admissionOf(ctx);
    const request = listRequestOf(queryOf(ctx), admission.collection, schema);
    const prefer = ctx.get('Prefer');
    const isCounted = prefer !== '' && request.count === undefined && wantsCount(prefer);
    const count = request.count ?? (isCounted ? 'exact' : 'none');
    const { json, hasMore, total, ...more } = await records.list(admission.access(), { ...request, count });
    const { limit, offset, cursors } = request;
    const { nextCursor = null, totalIsEstimate } = more;
    const next = cursors && { next_cursor: nextCursor, total_is_estimate: totalIsEstimate };
    const window = { limit, offset, has_more: hasMore, total, ...next };
    if (isCounted) ctx.set('Preference-Applied', 'count=exact');
    await sendJson(ctx, between('{"data":', json, `,"page":${JSON.stringify(window)}}`));
  },
});

/**
 * RFC 7240: commas separate preferences, and the first of a name counts. Split, not matched: linear
 * in the header.
 */
function wantsCount(prefer: string): boolean {
  for (const preference of prefer.split(',')) {
    const [pair = ''] = preference.split(';', 1);
    const equals = pair.indexOf('=');
    if (equals === -1 || pair.slice(0, equals).trim().toLowerCase() !== 'count') continue;
    const value = pair.slice(equals + 1).trim();
    return value === 'exact' || value === '"exact"';
  }
  return false;
}
