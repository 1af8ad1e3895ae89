import { isLocal } from '../../http/address.ts';
import { notFound } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';

export const metrics: Route = {
  method: 'GET',
  path: '/metrics',
  door: 'public',
  accepts: 'any',
  summary: 'Metrics in the text format of Prometheus',
  async handle(ctx, { config, addressOf, metrics: { read, contentType } }) {
    if (config.metrics === 'local' && !isLocal(ctx.req, addressOf)) throw notFound();
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Content-Type', contentType);
    ctx.body = await read();
  },
};
