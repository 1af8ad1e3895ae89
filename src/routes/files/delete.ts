import { admissionOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { headerOf, idOf } from '../records/request.ts';

export const deleteFile: Route = {
  method: 'DELETE',
  path: '/api/files/:id',
  door: { action: 'delete', collection: 'files' },
  summary: 'Delete a file',
  async handle(ctx, { records, files, log }) {
    const id = idOf(ctx);
    await records.remove(admissionOf(ctx).ask(), { id, ifMatch: headerOf(ctx, 'If-Match') });
    // The record is gone, and nobody can read the bytes; if they cannot be removed now, the sweep does it.
    await files.storage
      .remove(id)
      .catch((error: unknown) =>
        log.warn({ error: String(error) }, 'the bytes of a deleted file are left to the sweep'),
      );
    ctx.status = 204;
  },
};
