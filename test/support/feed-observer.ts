/** An observer of feeds that counts nothing, and places for all streams of a test. */
import type { FeedObserver } from '../../src/changes/feed-sender.ts';
import { ownStreamPlaces } from '../../src/changes/stream-places.ts';

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
