import { etagOf, isUnchanged } from '../../http/etag.ts';
import { admissionOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { expandOf, headerOf, idOf } from './request.ts';

export const readRecord: Route = {
  method: 'GET',
  path: '/api/:collection/:id',
  door: { action: 'read' },
  summary: 'Read one record',
  async handle(ctx, { records }) {
    const admission = admissionOf(ctx);
    const expand = expandOf(ctx, admission.collection);
    const { json, version } = await records.read(admission.ask(), { id: idOf(ctx), expand });
    const etag = etagOf(version, json);
    ctx.set('ETag', etag);
    if (isUnchanged(headerOf(ctx, 'If-None-Match'), etag)) {
      ctx.status = 304;
      return;
    }
    ctx.type = 'application/json';
    ctx.body = `{"data":${json}}`;
  },
};
