/** The metrics of the feeds of changes. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { FeedObserver } from '../../changes/feed-sender.ts';

/** Seconds. */
const LAG_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.15, 0.3, 1, 3, 10];

export function feedMetrics(registry: Registry): FeedObserver {
  const registers = [registry];
  const streams = new Gauge({ name: 'bylaw_feed_streams', help: 'Open feeds of changes.', registers });
  const events = new Counter({
    name: 'bylaw_feed_events_total',
    help: 'Events that feeds have sent.',
    labelNames: ['type'],
    registers,
  });
  const resets = new Counter({
    name: 'bylaw_feed_resets_total',
    help: 'Resets that feeds have sent.',
    labelNames: ['reason'],
    registers,
  });
  const closed = new Counter({
    name: 'bylaw_feed_closed_total',
    help: 'Feeds that have ended.',
    labelNames: ['reason'],
    registers,
  });
  const lag = new Histogram({
    name: 'bylaw_feed_lag_seconds',
    help: 'The time from a write to the sockets of its subscribers.',
    buckets: LAG_BUCKETS,
    registers,
  });
  const entries = new Gauge({
    name: 'bylaw_change_log_entries',
    help: 'Entries of the change log, as estimated at the last pruning.',
    registers,
  });
  return {
    onStreams: (count) => streams.set(count),
    onEvent: (type) => events.inc({ type }),
    onReset: (reason) => resets.inc({ reason }),
    onClosed: (reason) => closed.inc({ reason }),
    onLag: (seconds) => lag.observe(seconds),
    onEntries: (count) => entries.set(count),
  };
}
