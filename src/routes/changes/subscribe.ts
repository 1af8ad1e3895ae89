import { tenantProblems } from '../../describe/collection-schemas.ts';
import { eventStream, feedBody } from '../../describe/feed-schemas.ts';
import { admissionOf } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { describedFeed } from './feed-request.ts';
import { openStream } from './open-stream.ts';

export const subscribeToRecords = route({
  method: 'POST',
  path: '/api/:collection/changes',
  door: { action: 'list', needs: 'feed' },
  accepts: 'any',
  isStream: true,
  id: 'subscribe',
  summary: 'Receive the changes of {collection} that match a filter',
  description: 'The same stream as that of GET, for clients that read the body of `fetch`.',
  body: { type: 'application/json', shape: feedBody, read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: eventStream },
  problems: ['filter_invalid', 'not_found', 'rate_limited', tenantProblems],
  handle(ctx, app, body) {
    const { collection } = admissionOf(ctx);
    return openStream(ctx, app, new Map([['', describedFeed({ given: body }, app.schema, collection)]]));
  },
});
