import { tenantProblems } from '../../describe/collection-schemas.ts';
import { queryBody, queryPage } from '../../describe/query-schemas.ts';
import { sendJson } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { JsonPieces } from '../../records/json-pieces.ts';
import { route } from '../define-route.ts';
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
  async handle(ctx, { records, schema }, body) {
    const admission = admissionOf(ctx);
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
    await sendJson(ctx, new JsonPieces(['{"data":', json, `,"page":${JSON.stringify(page)}}`]));
  },
});
