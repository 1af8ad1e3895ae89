import { versionsOf } from '../../http/etag.ts';
import { admissionOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { announceUserChange, headerOf, idOf } from './request.ts';

export const removeRecord: Route = {
  method: 'DELETE',
  path: '/api/:collection/:id',
  door: { action: 'delete' },
  summary: 'Delete one record',
  async handle(ctx, app) {
    const { collection, ask } = admissionOf(ctx);
    const id = idOf(ctx);
    await app.records.remove(ask(), { id, ifVersion: versionsOf(headerOf(ctx, 'If-Match')) });
    if (collection.kind === 'users') await announceUserChange(ctx, app, id);
    ctx.status = 204;
  },
};
