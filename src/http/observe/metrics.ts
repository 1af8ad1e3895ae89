/**
 * Prometheus metrics of this process. Labels come from the route list, never from the path that a
 * client sent.
 */
import type { Context } from 'koa';
import { AggregatorRegistry, Counter, collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import type { UnindexedUse } from '../../records/access-context.ts';

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
}

/** `readAll` collects the metrics of all workers. */
export function createMetrics(readAll?: () => Promise<string>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  if (readAll !== undefined) answerPrimary(registry);
  const durations = new RequestDurations();
  registry.registerMetric(durations as unknown as Metric);
  const unindexed = new Counter({
    name: 'bylaw_unindexed_pages_total',
    help: 'Pages of records that were filtered or sorted by a field without an index, which reads the whole table.',
    labelNames: ['collection', 'field', 'use'],
    registers: [registry],
  });
  return {
    registry,
    contentType: registry.contentType,
    read: remembered(readAll ?? (() => registry.metrics())),
    durations,
    countUnindexed: (use) => unindexed.inc({ ...use }),
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

const COUNTED_METHODS = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PUT']);

// ---------------------------------------------------------------- durations

/** Seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

interface Labels {
  readonly method: string;
  readonly route: string;
  readonly status: number;
}

class Series {
  readonly labels: Labels;
  /** Each bucket alone, without those below; the last is above them all. */
  readonly counts = new Float64Array(BUCKETS.length + 1);
  sum = 0;

  constructor(labels: Labels) {
    this.labels = labels;
  }
}

interface SeriesValue {
  readonly metricName: string;
  readonly labels: Labels & { readonly le?: number | '+Inf' };
  readonly value: number;
}

/**
 * The durations of requests, as a histogram of Prometheus with the methods that the registry calls.
 * Counts in place: the library's own histogram makes objects and sorts labels for each request.
 */
export class RequestDurations {
  readonly name = 'bylaw_http_request_duration_seconds';
  readonly help = 'Time from the arrival of a request to the end of its response.';
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  /** Series by method, route and status. */
  readonly #series = new Map<string, Series>();

  /** Counts the request under the route that `ctx.state.route` names. */
  observe({ method: given, res, state }: Pick<Context, 'method' | 'res' | 'state'>, seconds: number): void {
    const method = COUNTED_METHODS.has(given) ? given : 'other';
    const route: string = state.route?.path ?? 'none';
    const status = res.statusCode;
    const key = `${method} ${route} ${status}`;
    const series = this.#series.get(key) ?? new Series({ method, route, status });
    this.#series.set(key, series);
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > BUCKETS[bucket]!) bucket++;
    series.counts[bucket]!++;
    series.sum += seconds;
  }

  async get(): Promise<object> {
    const { name, help, type, aggregator } = this;
    const values = [...this.#series.values()].flatMap((series) => [...seriesValues(name, series)]);
    return { name, help, type, aggregator, values };
  }

  getForPromString(): Promise<object> {
    return this.get();
  }

  reset(): void {
    this.#series.clear();
  }
}

function* seriesValues(name: string, { labels, counts, sum }: Series): Iterable<SeriesValue> {
  let total = 0;
  for (const [i, count] of counts.entries()) {
    total += count;
    yield { metricName: `${name}_bucket`, labels: { le: BUCKETS[i] ?? '+Inf', ...labels }, value: total };
  }
  yield { metricName: `${name}_sum`, labels, value: sum };
  yield { metricName: `${name}_count`, labels, value: total };
}
