import { capabilities } from '../../describe/capability-schemas.ts';
import { inData } from '../../describe/collection-schemas.ts';
import { admissionOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { recordIdOf } from './request.ts';

export const readCapabilities = route({
  method: 'GET',
  path: '/api/:collection/:id/can',
  door: { action: 'read' },
  id: 'can',
  summary: 'Ask what you may do with one record of {collection}',
  description:
    'For the record as it is stored. `depends`: the decision depends on the result of an update or on its body.',
  answers: { 200: { description: 'What you may do.', shape: inData(capabilities) } },
  problems: ['not_found'],
  async handle(ctx, { records }) {
    const admission = admissionOf(ctx);
    const data = await records.can(admission.access(), recordIdOf(ctx, admission.collection));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data };
  },
});
