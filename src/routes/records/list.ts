import { admissionOf } from '../../http/gate.ts';
import { queryOf } from '../../http/query.ts';
import type { Route } from '../../http/route.ts';
import { readListQuery } from './list-query.ts';

export const listRecords: Route = {
  method: 'GET',
  path: '/api/:collection',
  door: { action: 'list' },
  summary: 'List the records that you may see',
  async handle(ctx, { records }) {
    const admission = admissionOf(ctx);
    const query = readListQuery(queryOf(ctx), admission.collection);
    const count = wantsCount(ctx.get('Prefer'));
    const page = await records.list(admission.ask(), { ...query, count });
    const { limit, offset } = query;
    const about = { limit, offset, has_more: page.hasMore, ...(page.total === undefined ? {} : { total: page.total }) };
    if (count) ctx.set('Preference-Applied', 'count=exact');
    ctx.type = 'application/json';
    ctx.body = `{"data":${page.json},"page":${JSON.stringify(about)}}`;
  },
};

/** RFC 7240: commas separate preferences, and the first of a name counts. Split, not matched: linear in the header. */
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
