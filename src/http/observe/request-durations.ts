/**
 * How long requests took, as a histogram of Prometheus. Counts in place: the library's own histogram
 * makes objects and joins labels for each request.
 */

/** Seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

class Series {
  /** Of each bucket alone; the last is above them all. */
  readonly counts = new Float64Array(BUCKETS.length + 1);
  sum = 0;

  observe(seconds: number): void {
    let i = 0;
    while (i < BUCKETS.length && seconds > BUCKETS[i]!) i++;
    this.counts[i]!++;
    this.sum += seconds;
  }
}

interface Labels {
  readonly method: string;
  readonly route: string;
  readonly status: number;
}
interface Value {
  readonly metricName: string;
  readonly labels: Labels & { readonly le?: number | '+Inf' };
  readonly value: number;
}

/** What the registry asks of a metric. */
export class RequestDurations {
  readonly name = 'bylaw_http_request_duration_seconds';
  readonly help = 'Time from the arrival of a request to the end of its response.';
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  /** By route, method and status. */
  readonly #routes = new Map<string, Map<string, Map<number, Series>>>();

  observe({ route, method, status }: Labels, seconds: number): void {
    const statuses = innerOf(innerOf(this.#routes, route), method);
    const series = statuses.get(status) ?? new Series();
    statuses.set(status, series);
    series.observe(seconds);
  }

  async get(): Promise<object> {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: [...this.#values()] };
  }

  getForPromString(): Promise<object> {
    return this.get();
  }

  reset(): void {
    this.#routes.clear();
  }

  *#values(): Iterable<Value> {
    for (const [route, methods] of this.#routes) {
      for (const [method, statuses] of methods) {
        for (const [status, series] of statuses) yield* valuesOf(this.name, { method, route, status }, series);
      }
    }
  }
}

function* valuesOf(name: string, labels: Labels, { counts, sum }: Series): Iterable<Value> {
  let total = 0;
  for (const [i, count] of counts.entries()) {
    total += count;
    yield { metricName: `${name}_bucket`, labels: { le: BUCKETS[i] ?? '+Inf', ...labels }, value: total };
  }
  yield { metricName: `${name}_sum`, labels, value: sum };
  yield { metricName: `${name}_count`, labels, value: total };
}

function innerOf<K, V>(maps: Map<string, Map<K, V>>, key: string): Map<K, V> {
  let map = maps.get(key);
  if (map === undefined) {
    map = new Map();
    maps.set(key, map);
  }
  return map;
}
