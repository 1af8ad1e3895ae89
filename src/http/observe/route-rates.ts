/** Rates and latencies of routes over the last minute, as differences of the histogram that Prometheus reads: of all workers. */
import type { RouteRate, RouteRates } from '../../service-status.ts';

const METRIC = /^bylaw_http_request_duration_seconds_bucket\{(?<labels>[^}]*)\} (?<value>\d+)/gm;
const LABEL = /(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"/g;
const WINDOW_MS = 60_000;
const LONGEST_WINDOW_MS = 75_000;
/** Calls nearer to each other share a snapshot. */
const STEP_MS = 4_000;

/** Cumulative counts of a route by the bound of their bucket, in seconds. */
type Buckets = ReadonlyMap<number, number>;
interface RouteCounts {
  readonly method: string;
  readonly route: string;
  readonly all: Map<number, number>;
  readonly failed: Map<number, number>;
}
interface RateSnapshot {
  readonly at: number;
  readonly routes: ReadonlyMap<string, RouteCounts>;
}

export class RateWindow {
  /** The oldest first. Before the first call, nothing was counted. */
  #snapshots: readonly RateSnapshot[];

  constructor(startedAt: number) {
    this.#snapshots = [{ at: startedAt, routes: new Map() }];
  }

  /** @param text the metrics as Prometheus reads them; `now`: milliseconds */
  ratesOf(text: string, now: number): RouteRates {
    const current = { at: now, routes: countsIn(text) };
    const recent = this.#snapshots.filter(({ at }) => now - at <= LONGEST_WINDOW_MS);
    // Without a recent one, the rates are about all the time since the last call.
    const before = recent.find(({ at }) => now - at <= WINDOW_MS) ?? recent.at(-1) ?? this.#snapshots.at(-1)!;
    if (now - this.#snapshots.at(-1)!.at >= STEP_MS) this.#snapshots = [...recent, current];
    const seconds = Math.max(0.001, (now - before.at) / 1000);
    const routes = [...current.routes].flatMap(
      ([key, counts]) => routeRateOf(counts, before.routes.get(key), seconds) ?? [],
    );
    return { seconds: rounded(seconds), routes: routes.toSorted((a, b) => b.requests - a.requests) };
  }
}

function countsIn(text: string): ReadonlyMap<string, RouteCounts> {
  const found = new Map<string, RouteCounts>();
  for (const { groups } of text.matchAll(METRIC)) {
    const labels = new Map([...groups!.labels!.matchAll(LABEL)].map(([, name, value]) => [name!, value!]));
    const [method = '', route = '', le = ''] = ['method', 'route', 'le'].map((name) => labels.get(name));
    const key = `${method} ${route}`;
    const counts = found.get(key) ?? { method, route, all: new Map(), failed: new Map() };
    found.set(key, counts);
    const bound = le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le);
    const kinds = Number(labels.get('status')) >= 500 ? [counts.all, counts.failed] : [counts.all];
    for (const kind of kinds) kind.set(bound, (kind.get(bound) ?? 0) + Number(groups!.value));
  }
  return found;
}

function routeRateOf(now: RouteCounts, before: RouteCounts | undefined, seconds: number): RouteRate | undefined {
  const { method, route } = now;
  const all = since(now.all, before?.all);
  const requests = all.get(Number.POSITIVE_INFINITY) ?? 0;
  if (requests <= 0) return undefined;
  return {
    method,
    route,
    requests,
    failures: since(now.failed, before?.failed).get(Number.POSITIVE_INFINITY) ?? 0,
    per_second: rounded(requests / seconds),
    p50_ms: quantileOf(all, 0.5),
    p99_ms: quantileOf(all, 0.99),
  };
}

const since = (now: Buckets, before: Buckets | undefined): Buckets =>
  new Map([...now].map(([bound, count]) => [bound, count - (before?.get(bound) ?? 0)]));

/** Linear within the bucket, as Prometheus does; the last finite bound for what is slower. Milliseconds. */
function quantileOf(buckets: Buckets, share: number): number {
  const sorted = [...buckets].toSorted(([a], [b]) => a - b);
  const wanted = share * (sorted.at(-1)?.[1] ?? 0);
  let [low, below] = [0, 0];
  for (const [bound, count] of sorted) {
    if (count >= wanted && bound === Number.POSITIVE_INFINITY) return rounded(low * 1000);
    if (count >= wanted) return rounded((low + ((bound - low) * (wanted - below)) / Math.max(1, count - below)) * 1000);
    [low, below] = [bound, count];
  }
  return rounded(low * 1000);
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
