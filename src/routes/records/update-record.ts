import {
  adminProblems,
  exclusionProblems,
  expandParameter,
  transitionProblems,
  uniqueProblems,
  updateData,
  written,
} from '../../describe/collection-schemas.ts';
import { versionsOf } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { expandOf } from './query/query-string.ts';
import {
  answerWritten,
  headerOf,
  ifMatchParameter,
  recordBody,
  recordIdOf,
  requireChange,
  sendAnswer,
} from './request.ts';

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
    exclusionProblems,
    adminProblems,
    transitionProblems,
  ],
  async handle(ctx, app, envelope) {
    const admission = admissionOf(ctx);
    const { data, errors } = envelope;
    const relations = expandOf(ctx, admission.collection);
    if (errors.length === 0) requireChange(data);
    const access = admission.access(data);
    const ifVersion = versionsOf(headerOf(ctx, 'If-Match'));
    const id = recordIdOf(ctx, admission.collection);
    const updated = await app.records.update(access, { id, data, errors, relations, ifVersion });
    await sendAnswer(ctx, answerWritten(admission.collection, updated));
  },
});
