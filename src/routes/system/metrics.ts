import { TEXT } from '../../describe/operation.ts';
import { notFoundProblem } from '../../http/gate.ts';
import { isLocal } from '../../http/request.ts';
import { route } from '../define-route.ts';

export const metrics = route({
  method: 'GET',
  path: '/metrics',
  door: 'public',
  accepts: 'any',
  id: 'metrics',
  summary: 'Get metrics for Prometheus',
  answers: { 200: { description: 'In the text format of Prometheus.', type: 'text/plain', shape: () => TEXT } },
  description: 'Unless configured otherwise, only for requests from this machine; others get 404.',
  problems: ['not_found'],
  async handle(ctx, { config, metrics: { read, contentType } }) {
    if (config.metrics === 'local' && !isLocal(ctx)) throw notFoundProblem();
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Content-Type', contentType);
    ctx.body = await read();
  },
});
