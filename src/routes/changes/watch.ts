import { filterParameters, tenantProblems } from '../../describe/collection-schemas.ts';
import { eventStream, positionParameters } from '../../describe/feed-schemas.ts';
import { sendStreamHead } from '../../http/event-stream.ts';
import { admissionOf } from '../../http/gate.ts';
import { queryOf } from '../../http/request.ts';
import { route } from '../define-route.ts';
import { queriedFeed } from './feed-request.ts';
import { openStream } from './open-stream.ts';

export const watchRecords = route({
  method: 'GET',
  path: '/api/:collection/changes',
  door: { action: 'list', needs: 'feed' },
  accepts: 'any',
  isStream: true,
  id: 'watch',
  summary: 'Receive the changes of {collection} that your lists would show',
  description: 'Server-sent events, such as `EventSource` reads. Filters match exactly, and all of them must match.',
  parameters: [...positionParameters, filterParameters],
  answers: { 200: eventStream },
  problems: [
    'invalid_parameter',
    'filter_unknown_key',
    'filter_invalid_value',
    'filter_duplicate_key',
    'filter_invalid',
    'not_found',
    'rate_limited',
    tenantProblems,
  ],
  handle(ctx, app) {
    const { collection } = admissionOf(ctx);
    const feed = queriedFeed(queryOf(ctx), collection, app.schema);
    return ctx.method === 'HEAD' ? sendStreamHead(ctx) : openStream(ctx, app, new Map([['', feed]]));
  },
});
