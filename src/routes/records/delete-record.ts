import { triggerProblems } from '../../describe/collection-schemas.ts';
import { versionsOf } from '../../http/answer/send.ts';
import { admissionOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { headerOf, ifMatchParameter, recordIdOf } from './request.ts';

export const removeRecord = route({
  method: 'DELETE',
  path: '/api/:collection/:id',
  door: { action: 'delete' },
  id: 'delete',
  summary: 'Delete one record of {collection}',
  description:
    'Records that reference it are deleted, lose the reference, or prevent the deletion, as `on_delete` says.',
  parameters: [ifMatchParameter],
  answers: { 204: { description: 'Deleted.' } },
  problems: ['not_found', 'changed', 'still_referenced', 'last_admin', triggerProblems],
  async handle(ctx, app) {
    const admission = admissionOf(ctx);
    const id = recordIdOf(ctx, admission.collection);
    const ifVersion = versionsOf(headerOf(ctx, 'If-Match'));
    await app.records.remove(admission.access(), { id, ifVersion });
    ctx.status = 204;
  },
});
