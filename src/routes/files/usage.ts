import { inData } from '../../describe/collection-schemas.ts';
import { object } from '../../describe/operation.ts';
import { quotaOf, usedBy } from '../../files/receive/quota.ts';
import { callerOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';

export const readUsage = route({
  method: 'GET',
  path: '/api/_uploads',
  door: 'user',
  id: 'read_uploads',
  summary: 'Read how many bytes you store, and may store',
  description: 'The files that you uploaded count, also those that you may no longer read.',
  answers: {
    200: {
      description: 'Bytes.',
      shape: inData(() =>
        object({
          used: { type: 'integer' },
          quota: { type: ['integer', 'null'], description: 'null: no limit.' },
          max_size: { type: 'integer', description: 'Of one file.' },
        }),
      ),
    },
  },
  problems: ['rate_limited'],
  async handle(ctx, app) {
    const caller = callerOf(ctx);
    await app.auth.countQuestion(caller);
    const { uploads } = app.schema;
    const quota = quotaOf(uploads, caller.auth.roles) ?? null;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: { used: await usedBy(app.db, caller.principal), quota, max_size: uploads.maxSize } };
  },
});
