import {
  adminProblems,
  exclusionProblems,
  tenantProblems,
  transitionProblems,
  uniqueProblems,
  updateData,
} from '../../../describe/collection-schemas.ts';
import { matchingAnswer, matchingBody } from '../../../describe/query-schemas.ts';
import { route } from '../../define-route.ts';
import { idempotencyParameter } from '../idempotent.ts';
import { answerMatching } from './matching-request.ts';

export const updateMatching = route({
  method: 'POST',
  path: '/api/:collection/update',
  door: { action: 'update' },
  id: 'updateMatching',
  summary: 'Update the records of {collection} that match a filter',
  description: 'Records that you may list, each under its rule for `update`, in one transaction.',
  parameters: [idempotencyParameter],
  body: { type: 'application/json', shape: matchingBody(updateData), read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: { description: 'The number of records.', shape: matchingAnswer } },
  problems: [
    'invalid_parameter',
    'filter_invalid',
    'query_too_expensive',
    'patch_empty',
    'idempotency_mismatch',
    tenantProblems,
    uniqueProblems,
    exclusionProblems,
    adminProblems,
    transitionProblems,
  ],
  handle: answerMatching,
});
