/** JSON Schemas of the streams of changes. */
import { closed, type Json, type OperationParameter, type RouteAnswer, type Shape, TEXT } from './operation.ts';
import { QUERY_FILTER } from './query-schemas.ts';

/** Feeds of one stream. */
export const MOST_FEEDS = 20;

const SINCE: Json = { ...TEXT, description: 'The `id` of the last event that was received.' };

export const positionParameters: readonly OperationParameter[] = [
  { name: 'since', in: 'query', description: String(SINCE.description), schema: TEXT },
  {
    name: 'Last-Event-ID',
    in: 'header',
    description: 'The same as `since`, before which it counts.',
    schema: TEXT,
  },
];

export const eventStream: RouteAnswer = {
  description:
    'Events: `ready`, `enter` and `change` with a `record`, `leave` with an `id`, and `reset` with a `reason`: list again.',
  type: 'text/event-stream',
  shape: () => TEXT,
};

const FEED: Json = {
  ...QUERY_FILTER,
  fields: { type: 'array', items: TEXT, description: 'Members of the record to return; the id always comes.' },
  since: SINCE,
};

/** Without a filter, it is the feed of all records that the caller may list. */
export const feedBody: Shape = () => ({ ...closed(FEED), examples: [{}] });

export const feedsBody: Shape = ({ schema }) => {
  const watched = [...schema.collections.values()].flatMap(({ name, feed }) => (feed === undefined ? [] : [name]));
  const feed = closed(
    { collection: watched.length === 0 ? TEXT : { type: 'string', enum: watched }, ...FEED },
    { required: ['collection'] },
  );
  const examples = watched.slice(0, 1).map((collection) => ({ [collection]: { collection } }));
  const limits = { minProperties: 1, maxProperties: MOST_FEEDS };
  const feeds = { type: 'object', ...limits, additionalProperties: feed, ...(examples.length > 0 && { examples }) };
  return closed({ feeds }, { required: ['feeds'] });
};
