import { expandParameter, inData, record } from '../../describe/collection-schemas.ts';
import { entityTagOf, isUnchanged, sendJson } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { between } from '../../records/json-pieces.ts';
import { route } from '../define-route.ts';
import { expandOf } from './query/query-string.ts';
import { headerOf, ifNoneMatchParameter, recordIdOf } from './request.ts';

export const readRecord = route({
  method: 'GET',
  path: '/api/:collection/:id',
  door: { action: 'read' },
  id: 'read',
  summary: 'Read one record of {collection}',
  parameters: [expandParameter, ifNoneMatchParameter],
  answers: {
    200: { description: 'The record.', shape: inData(record), headers: ['ETag'] },
    304: { description: 'You have this version already.', headers: ['ETag'] },
  },
  problems: ['invalid_parameter', 'unknown_expand', 'query_too_expensive', 'not_found'],
  async handle(ctx, { records }) {
    const admission = admissionOf(ctx);
    const relations = expandOf(ctx, admission.collection);
    const id = recordIdOf(ctx, admission.collection);
    const { json, version } = await records.read(admission.access(), { id, relations });
    const etag = entityTagOf(version, json);
    ctx.res.setHeader('ETag', etag);
    if (isUnchanged(headerOf(ctx, 'If-None-Match'), etag)) {
      ctx.status = 304;
      return;
    }
    await sendJson(ctx, between('{"data":', json, '}'));
  },
});
