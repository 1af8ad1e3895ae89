import { object, TEXT, TIMESTAMP } from '../../describe/operation.ts';
import { admissionOf } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { datetimeOf } from '../../policy/values.ts';
import { route } from '../define-route.ts';
import { idInPath } from '../records/request.ts';

export const linkFile = route({
  method: 'POST',
  path: '/api/files/:id/link',
  door: { action: 'read', collection: 'files' },
  id: 'link_file',
  summary: 'Create a link to the content of a file',
  description: 'The link needs no credential and lasts for a few minutes, or until your session ends.',
  answers: {
    201: { description: 'The link.', shape: () => object({ url: { ...TEXT, format: 'uri' }, expires_at: TIMESTAMP }) },
  },
  problems: ['not_found'],
  async handle(ctx, app) {
    const { records, files, config, auth } = app;
    const admission = admissionOf(ctx);
    const { caller } = admission;
    const id = idInPath(ctx);
    await records.read(admission.access(), { id, relations: [] });
    const { sessionId, principal: userId } = caller;
    const kind = caller.by === 'key' ? 'key' : 'session';
    const { token, expiresAt } = files.links.make({ fileId: id, sessionId, userId, kind });
    await auth.fileLinkMade(caller, id, clientOf(ctx));
    ctx.status = 201;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = {
      url: `${config.baseUrl}/api/files/${id}/content?token=${token}`,
      expires_at: datetimeOf(expiresAt),
    };
  },
});
