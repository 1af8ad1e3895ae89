import { tenantProblems, triggerProblems } from '../../../describe/collection-schemas.ts';
import { matchingAnswer, matchingBody } from '../../../describe/query-schemas.ts';
import { route } from '../../define-route.ts';
import { idempotencyParameter } from '../idempotent.ts';
import { answerMatching } from './matching-request.ts';

export const deleteMatching = route({
  method: 'POST',
  path: '/api/:collection/delete',
  door: { action: 'delete' },
  id: 'deleteMatching',
  summary: 'Delete the records of {collection} that match a filter',
  description: 'Records that you may list, each under its rule for `delete`, in one transaction.',
  parameters: [idempotencyParameter],
  body: { type: 'application/json', shape: matchingBody(), read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: { description: 'The number of records.', shape: matchingAnswer } },
  problems: [
    'invalid_parameter',
    'filter_invalid',
    'query_too_expensive',
    'idempotency_mismatch',
    'still_referenced',
    'last_admin',
    tenantProblems,
    triggerProblems,
  ],
  handle: answerMatching,
});
