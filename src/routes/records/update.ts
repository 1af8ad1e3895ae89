import {
  adminProblems,
  expandParameter,
  uniqueProblems,
  updateData,
  written,
} from '../../describe/collection-schemas.ts';
import { versionsOf } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { headerOf, idOf, ifMatchParameter } from './request.ts';
import { answerWritten, recordBody, requireChange, send, writeRequestOf } from './write-request.ts';

export const updateRecord = route({
  method: 'PATCH',
  path: '/api/:collection/:id',
  door: { action: 'update' },
  id: 'update',
  summary: 'Update fields and relations of one record of {collection}',
  description: 'Omitted fields keep their value.',
  parameters: [expandParameter, ifMatchParameter],
  body: recordBody(updateData),
  answers: {
    200: { description: 'The record, or only its id where you may not read it.', shape: written, headers: ['ETag'] },
  },
  problems: [
    'invalid_parameter',
    'unknown_expand',
    'patch_empty',
    'not_found',
    'changed',
    uniqueProblems,
    adminProblems,
  ],
  async handle(ctx, app, envelope) {
    const admission = admissionOf(ctx);
    const request = writeRequestOf(ctx, admission.collection, envelope);
    if (request.errors.length === 0) requireChange(request.data);
    const access = admission.access(request.data);
    const ifVersion = versionsOf(headerOf(ctx, 'If-Match'));
    const updated = await app.records.update(access, { ...request, id: idOf(ctx), ifVersion });
    send(ctx, answerWritten(updated));
  },
});
