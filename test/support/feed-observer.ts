/** An observer of feeds that counts nothing. */
import type { FeedObserver } from '../../src/changes/change-feeds.ts';

export const ignore = (): void => undefined;
export const noFeedObserver: FeedObserver = {
  onStreams: ignore,
  onEvent: ignore,
  onReset: ignore,
  onClosed: ignore,
  onLag: ignore,
  onEntries: ignore,
};
