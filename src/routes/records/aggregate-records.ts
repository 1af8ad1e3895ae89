import { tenantProblems } from '../../describe/collection-schemas.ts';
import { aggregateBody, aggregateRows } from '../../describe/query-schemas.ts';
import { sendJson } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { between } from '../../records/json-pieces.ts';
import { route } from '../define-route.ts';
import { aggregateRequestOf } from './aggregate-request.ts';

export const aggregateRecords = route({
  method: 'POST',
  path: '/api/:collection/aggregate',
  door: { action: 'list' },
  id: 'aggregate',
  summary: 'Count and measure the records of {collection} in groups',
  description:
    'A read, sent by POST because of its body. It takes in the records that a query with that filter would find.',
  body: { type: 'application/json', shape: aggregateBody, read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: { description: 'A row for each group.', shape: aggregateRows } },
  problems: ['filter_invalid', 'query_too_expensive', tenantProblems],
  async handle(ctx, { records, schema }, body) {
    const admission = admissionOf(ctx);
    const request = aggregateRequestOf(body, schema, admission.collection);
    const { json, hasMore } = await records.aggregate(admission.access(), request);
    ctx.set('Cache-Control', 'no-store');
    await sendJson(ctx, between('{"data":', json, `,"page":${JSON.stringify({ has_more: hasMore })}}`));
  },
});
