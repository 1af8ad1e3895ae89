import { admissionOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { idOf } from '../records/request.ts';

export const linkFile: Route = {
  method: 'POST',
  path: '/api/files/:id/link',
  door: { action: 'read', collection: 'files' },
  summary: 'Make a link to the content that needs no header and lasts for a few minutes',
  body: 'none',
  async handle(ctx, { records, files, config }) {
    const { ask, caller } = admissionOf(ctx);
    const id = idOf(ctx);
    await records.read(ask(), { id, expand: [] });
    const { token, expiresAt } = files.links.make({ fileId: id, sessionId: caller.sessionId, userId: caller.id });
    ctx.status = 201;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = {
      url: `${config.baseUrl}/api/files/${id}/content?token=${token}`,
      expires_at: expiresAt.toISOString().replace('Z', '000Z'),
    };
  },
};
