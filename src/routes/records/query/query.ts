import type { Context } from 'koa';
import { tenantProblems } from '../../../describe/collection-schemas.ts';
import { queryBody, queryPage } from '../../../describe/query-schemas.ts';
import { sendJson } from '../../../http/answer/send.ts';
import type { App } from '../../../http/app.ts';
import { admissionOf, admitOf } from '../../../http/gate.ts';
import { Problem } from '../../../problem.ts';
import { between } from '../../../records/json-pieces.ts';
import { isObject } from '../../../records/write/input.ts';
import { route } from '../../define-route.ts';
import { queryRequestOf } from './query-request.ts';

export const queryRecords = route({
  method: 'POST',
  path: '/api/:collection/query',
  door: { action: 'list' },
  id: 'query',
  summary: 'Find records of {collection} by a filter, in any order',
  description:
    'A read, sent by POST because of its body. The filter sees what you may read and nothing else. Pages follow each other by cursor.',
  body: { type: 'application/json', shape: queryBody, read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: { description: 'A page of records.', shape: queryPage } },
  problems: ['filter_invalid', 'invalid_cursor', 'query_too_expensive', tenantProblems],
  async handle(ctx, app, body) {
    const { admission, schema, records } = queryPlace(ctx, app, body);
    const request = queryRequestOf(body, schema, admission.collection);
    const found = await records.list(admission.access(), request);
    const { json, hasMore, nextCursor = null, total, totalIsEstimate } = found;
    const page = {
      limit: request.limit,
      has_more: hasMore,
      next_cursor: nextCursor,
      total,
      total_is_estimate: totalIsEstimate,
    };
    ctx.set('Cache-Control', 'no-store');
    await sendJson(ctx, between('{"data":', json, `,"page":${JSON.stringify(page)}}`));
  },
});

/** Living records, or with `deleted` the deleted ones, under the rules for `restore`. */
function queryPlace(ctx: Context, app: App, body: unknown) {
  const admission = admissionOf(ctx);
  if (!isObject(body) || body.deleted !== true) return { admission, schema: app.schema, records: app.records };
  const { name } = admission.collection;
  const records = app.deleted(name);
  if (records === undefined) {
    const detail = `\`${name}\` keeps no deleted records; \`soft_delete: true\` in the schema keeps them`;
    const errors = [{ pointer: '/deleted', code: 'invalid_value', detail }];
    throw new Problem('validation_failed', 'the query is not valid', { errors });
  }
  const { schema, collection } = records;
  return { admission: admitOf(ctx, { ...app, schema })(collection, 'list'), schema, records };
}
