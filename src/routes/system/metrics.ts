import type { Route } from '../../http/route.ts';

export const metrics: Route = {
  method: 'GET',
  path: '/metrics',
  door: 'public',
  accepts: 'any',
  summary: 'Metrics in the text format of Prometheus',
  async handle(ctx, { metrics: { read, contentType } }) {
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Content-Type', contentType);
    ctx.body = await read();
  },
};
