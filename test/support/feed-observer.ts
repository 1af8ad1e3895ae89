/** An observer of feeds that counts nothing, places for all streams of a test, and what a stream asks for. */
import type { FeedObserver } from '../../src/changes/feed-sender.ts';
import { ownStreamPlaces } from '../../src/changes/stream-places.ts';
import type { FeedRequest } from '../../src/changes/subscriber.ts';
import type { AccessContext } from '../../src/records/records.ts';

export const manyPlaces = ownStreamPlaces({ user: 100_000, node: 100_000 });
export const ignore = (): void => undefined;
export const noFeedObserver: FeedObserver = {
  onStreams: ignore,
  onEvent: ignore,
  onReset: ignore,
  onClosed: ignore,
  onLag: ignore,
  onEntries: ignore,
};

interface AskingCaller {
  ask(collection: string): AccessContext;
}

/** Asks for all records of the collection that the caller may list, in a session that does not change. */
export function feedRequest(caller: AskingCaller, collection: string, since?: string): FeedRequest {
  return {
    collection: caller.ask(collection).collection,
    access: () => caller.ask(collection),
    recheck: () => 'same',
    filters: [],
    query: '',
    since,
  };
}
