/**
 * Records each request when its response is closed: a line of the log, without tokens, passwords,
 * cookies, bodies or query values, and its duration. Labels come from the route list, never from the
 * path that a client sent.
 */
import type { Context } from 'koa';
import { type Logger, pino } from 'pino';
import { datetimeOf } from '../../policy/values.ts';
import type { LogLines } from './log.ts';

/** The characters of a canonical datetime up to its milliseconds. */
const MILLISECONDS = 23;

/**
 * Writes the line of a request that took `ms` milliseconds. The line is joined here, as pino would
 * write it: its serialisers cost more than a small request's rules.
 */
export function logRequest(log: Logger, ctx: Context, ms: number): void {
  if (!log.isLevelEnabled('info')) return;
  const status = ctx.res.headersSent ? ctx.res.statusCode : 499;
  const { requestId, address, caller } = ctx.state;
  const stream = (log as unknown as { readonly [pino.symbols.streamSym]: LogLines })[pino.symbols.streamSym];
  stream.write(
    `{"level":"info","time":"${datetimeOf(new Date()).slice(0, MILLISECONDS)}Z","pid":${process.pid}` +
      `,"request_id":${JSON.stringify(requestId)}` +
      `,"method":${JSON.stringify(ctx.method)},"path":${JSON.stringify(ctx.path)},"status":${status}` +
      `,"ms":${Math.round(ms * 10) / 10},"address":${JSON.stringify(address)}` +
      `${caller === undefined ? '' : `,"${caller.kind}":${JSON.stringify(caller.principal)}`},"msg":"request"}\n`,
  );
}

// ---------------------------------------------------------------- durations

const COUNTED_METHODS = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PUT']);

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
