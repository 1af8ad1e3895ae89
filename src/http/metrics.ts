/**
 * Prometheus metrics of this process. Labels come from the route list, never from the path that a
 * client sent.
 */
import type { Context, Next } from 'koa';
import { AggregatorRegistry, collectDefaultMetrics, Histogram, Registry } from 'prom-client';

export interface Metrics {
  readonly registry: Registry;
  readonly contentType: string;
  /**
   * The metrics of this process, or of all workers if there are several, in the text format of
   * Prometheus.
   */
  readonly read: () => Promise<string>;
  /** Counts and times the request under the route that `ctx.state.route` names. */
  readonly measure: (ctx: Context, next: Next) => Promise<void>;
}

/** `readAll` collects the metrics of all workers. */
export function createMetrics(readAll?: () => Promise<string>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  if (readAll !== undefined) answerPrimary(registry);
  const duration = new Histogram({
    name: 'bylaw_http_request_duration_seconds',
    help: 'Time from the arrival of a request to the end of its response.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  const measure = async (ctx: Context, next: Next): Promise<void> => {
    const start = performance.now();
    ctx.res.once('close', () => {
      const path = ctx.state.route?.path ?? 'none';
      duration.observe(
        { method: countedMethod(ctx.method), route: path, status: ctx.res.statusCode },
        (performance.now() - start) / 1000,
      );
    });
    await next();
  };
  return {
    registry,
    contentType: registry.contentType,
    read: remembered(readAll ?? (() => registry.metrics())),
    measure,
  };
}

/** Milliseconds. Collecting takes tens of them, and no scraper needs fresher values. */
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
const countedMethod = (method: string): string => (COUNTED_METHODS.has(method) ? method : 'other');
