/** Prometheus metrics of this process. */
import { AggregatorRegistry, Counter, collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import type { FeedObserver } from '../../changes/feed-sender.ts';
import { memoized } from '../../memoized.ts';
import type { UnindexedUse } from '../../records/access-context.ts';
import { feedMetrics } from './feed-metrics.ts';
import { loadMetrics } from './load-metrics.ts';
import { type MailMetrics, mailMetrics } from './mail-metrics.ts';
import { RequestDurations } from './request-record.ts';

export interface Metrics {
  readonly registry: Registry;
  readonly contentType: string;
  /**
   * The metrics of this process, or of all workers if there are several, in the text format of
   * Prometheus.
   */
  readonly read: () => Promise<string>;
  readonly durations: RequestDurations;
  /** Counts a page that was filtered or sorted by a field without an index. */
  readonly countUnindexed: (use: UnindexedUse) => void;
  /** Counts a dry run that tried a unique value of another record. */
  readonly countTaken: (collection: string) => void;
  readonly feeds: FeedObserver;
  readonly mails: MailMetrics;
  readonly webhooks: { readonly onSent: (webhook: string, result: string) => void };
}

/** Each call starts a timer of 10 ms and an observer of collections, which nothing ends: all services of a process share them. */
const processMetrics = memoized(() => {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry.getMetricsAsArray();
});

/** `readAll` collects the metrics of all workers. */
export function createMetrics(readAll?: () => Promise<string>): Metrics {
  const registry = new Registry();
  for (const metric of processMetrics()) registry.registerMetric(metric as unknown as Metric);
  loadMetrics(registry);
  if (readAll !== undefined) answerPrimary(registry);
  const durations = new RequestDurations();
  registry.registerMetric(durations as unknown as Metric);
  const unindexed = new Counter({
    name: 'bylaw_unindexed_pages_total',
    help: 'Pages of records that were filtered or sorted by a field without an index, which reads the whole table.',
    labelNames: ['collection', 'field', 'use'],
    registers: [registry],
  });
  const taken = new Counter({
    name: 'bylaw_dry_run_conflicts_total',
    help: 'Dry runs that tried a unique value, or a period, that another record has.',
    labelNames: ['collection'],
    registers: [registry],
  });
  const sent = new Counter({
    name: 'bylaw_webhook_events_total',
    help: 'Posts of events to webhooks.',
    labelNames: ['webhook', 'result'],
    registers: [registry],
  });
  return {
    registry,
    contentType: registry.contentType,
    read: remembered(readAll ?? (() => registry.metrics())),
    durations,
    countUnindexed: (use) => unindexed.inc({ ...use }),
    countTaken: (collection) => taken.inc({ collection }),
    feeds: feedMetrics(registry),
    mails: mailMetrics(registry),
    webhooks: { onSent: (webhook, result) => sent.inc({ webhook, result }) },
  };
}

/** Milliseconds. A collection takes tens of them, and no scraper needs fresher values. */
const REMEMBERED_MS = 1_000;

function remembered(read: () => Promise<string>): () => Promise<string> {
  let last: Promise<string> | undefined;
  return () => {
    if (last === undefined) {
      last = read();
      setTimeout(() => {
        last = undefined;
      }, REMEMBERED_MS).unref();
    }
    return last;
  };
}

/** Sends this worker's metrics to the primary process, which requests them by a message. */
function answerPrimary(registry: Registry): void {
  AggregatorRegistry.setRegistries([registry]);
  // The constructor adds the listener.
  new AggregatorRegistry();
}
