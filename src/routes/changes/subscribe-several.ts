import type { Context } from 'koa';
import { eventStream, feedsBody, MOST_FEEDS } from '../../describe/feed-schemas.ts';
import type { App } from '../../http/app.ts';
import { admitOf } from '../../http/gate.ts';
import { addError, type ErrorDetail, echo, Problem, pointerPart } from '../../problem.ts';
import { type Data, isObject } from '../../records/write/input.ts';
import type { Collection } from '../../schema/model/model.ts';
import { route } from '../define-route.ts';
import { QueryErrors } from '../records/query/query-errors.ts';
import { type AskedFeed, describedFeed } from './feed-request.ts';
import { openStream } from './open-stream.ts';

const FEED_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export const subscribeToSeveral = route({
  method: 'POST',
  path: '/api/changes',
  door: 'caller',
  accepts: 'any',
  isStream: true,
  id: 'subscribe_to_several',
  summary: 'Receive the changes of several feeds on one stream',
  description: 'Each event names its feed. Each feed is admitted as a request of its own.',
  body: { type: 'application/json', shape: feedsBody, read: (ctx, app) => app.readJson(ctx) },
  answers: { 200: eventStream },
  problems: ['filter_invalid', 'filter_required', 'forbidden', 'not_found', 'rate_limited'],
  async handle(ctx, app, body) {
    await openStream(ctx, app, feedsOf(ctx, app, body));
  },
});

function feedsOf(ctx: Context, app: App, body: unknown): ReadonlyMap<string, AskedFeed> {
  const entries = Object.entries(givenFeeds(body));
  if (entries.length === 0 || entries.length > MOST_FEEDS)
    throw invalidFeeds('/feeds', 'invalid_value', `expected 1 to ${MOST_FEEDS} feeds, found ${entries.length}`);
  const errors = new QueryErrors();
  const asked = entries.map(([name, given]): [string, AskedFeed] => {
    const collection = feedCollection(ctx, app, [name, given]);
    return [
      name,
      describedFeed({ given, more: ['collection'], path: ['feeds', name], errors }, app.schema, collection),
    ];
  });
  return new Map(asked);
}

/** The feeds by name, as they are given. */
function givenFeeds(body: unknown): Data {
  if (!isObject(body)) throw invalidFeeds('', 'not_an_object', 'expected an object with the key `feeds`');
  const { feeds, ...others } = body;
  const errors: ErrorDetail[] = [];
  for (const key of Object.keys(others))
    addError(errors, { pointer: `/${pointerPart(key)}`, code: 'unknown_key', detail: 'unknown key; expected `feeds`' });
  if (isObject(feeds) && errors.length === 0) return feeds;
  const code = feeds === undefined ? 'required' : 'not_an_object';
  if (!isObject(feeds)) addError(errors, { pointer: '/feeds', code, detail: 'expected an object of feeds by name' });
  throw invalidBody(errors);
}

/** The collection of a feed that the caller may list. */
function feedCollection(ctx: Context, app: App, [name, given]: readonly [string, unknown]): Collection {
  const pointer = `/feeds/${pointerPart(name)}`;
  if (!FEED_NAME.test(name))
    throw invalidFeeds(
      pointer,
      'invalid_value',
      `expected a name of letters, digits and \`_\`, found \`${echo(name)}\``,
    );
  const named = isObject(given) ? given.collection : undefined;
  if (typeof named !== 'string')
    throw invalidFeeds(`${pointer}/collection`, 'required', 'expected the name of a collection');
  const collection = app.schema.collections.get(named);
  if (collection?.feed === undefined)
    throw refused('not_found', pointer, 'no feed has this name, or it is not visible to you');
  try {
    admitOf(ctx, app)(collection, 'list');
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw refused('forbidden', pointer, error.message);
  }
  return collection;
}

const invalidFeeds = (pointer: string, code: string, detail: string): Problem =>
  invalidBody([{ pointer, code, detail }]);

const invalidBody = (errors: readonly ErrorDetail[]): Problem =>
  new Problem('validation_failed', 'the body does not describe feeds', { errors });

const refused = (code: 'not_found' | 'forbidden', pointer: string, detail: string): Problem =>
  new Problem(code, detail, { errors: [{ pointer, code, detail }] });
