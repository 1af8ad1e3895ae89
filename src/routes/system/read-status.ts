import { inData } from '../../describe/collection-schemas.ts';
import { type Json, object, TEXT } from '../../describe/operation.ts';
import { callerOf, forbiddenProblem } from '../../http/gate.ts';
import type { Metrics } from '../../http/observe/metrics.ts';
import { RateWindow } from '../../http/observe/route-rates.ts';
import { memoizedBy } from '../../memoized.ts';
import { parseSchema } from '../../schema/load.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { ServiceStatus } from '../../service-status.ts';
import { sql } from '../../sql.ts';
import { route } from '../define-route.ts';
import { ANY_VARIABLE } from '../workshop/draft-schema.ts';

const NUMBER: Json = { type: 'number' };
const NUMBER_OR_NULL: Json = { type: ['number', 'null'] };
const ROUTE_RATE = object({
  method: TEXT,
  route: TEXT,
  requests: NUMBER,
  failures: NUMBER,
  per_second: NUMBER,
  p50_ms: NUMBER,
  p99_ms: NUMBER,
});
const WARNING = object({ code: TEXT, line: NUMBER, message: TEXT });

const rateWindowOf = memoizedBy((_metrics: Metrics) => new RateWindow(Date.now() - process.uptime() * 1000));

/** The environment decides no warning. */
const warningsOf = memoizedBy((schema: Schema) =>
  parseSchema(schema.text, schema.file, ANY_VARIABLE)
    .issues.filter(({ severity }) => severity === 'warning')
    .map(({ code, line, message }) => ({ code, line, message })),
);

export const readStatus = route({
  method: 'GET',
  path: '/api/_status',
  door: 'admin',
  id: 'read_status',
  summary: 'Read how the service is',
  description: 'Rates and latencies are of all workers, over the last minute.',
  answers: {
    200: {
      description: 'The state of the service.',
      shape: inData(() =>
        object({
          version: TEXT,
          uptime_seconds: NUMBER,
          workers: NUMBER,
          ready: { type: 'boolean' },
          database: object({ kind: { enum: ['embedded', 'postgres'] }, version: TEXT, bytes: NUMBER }),
          event_loop_lag_ms: NUMBER_OR_NULL,
          memory_bytes: NUMBER_OR_NULL,
          requests: object({ seconds: NUMBER, routes: { type: 'array', items: ROUTE_RATE } }),
          queues: object({ tasks: NUMBER_OR_NULL, mails: NUMBER_OR_NULL }),
          policy_cache: object({ entries: NUMBER_OR_NULL, made: NUMBER_OR_NULL }),
          feeds: object({ streams: NUMBER_OR_NULL, log_entries: NUMBER_OR_NULL }),
          mail_to: { enum: ['smtp', 'folder'] },
          warnings: { type: 'array', items: WARNING },
        }),
      ),
    },
  },
  problems: ['forbidden', 'rate_limited'],
  async handle(ctx, app) {
    const asker = callerOf(ctx);
    if (asker.by === 'key') throw forbiddenProblem();
    await app.auth.countQuestion(asker);
    const { db, metrics, config, schema } = app;
    const text = await metrics.read();
    const [[version, bytes] = []] = await db.rows(
      sql`SELECT current_setting('server_version'), pg_database_size(current_database())`,
    );
    const isReady = await app.isReady().catch(() => false);
    const inSeconds = gaugeIn(text, 'nodejs_eventloop_lag_p99_seconds');
    ctx.set('Cache-Control', 'no-store');
    const status: ServiceStatus = {
      version: app.version,
      uptime_seconds: Math.round(process.uptime()),
      workers: config.workers,
      ready: isReady,
      database: { kind: db.kind, version: String(version), bytes: Number(bytes) },
      event_loop_lag_ms: inSeconds === null ? null : Math.round(inSeconds * 100_000) / 100,
      memory_bytes: gaugeIn(text, 'process_resident_memory_bytes'),
      requests: rateWindowOf(metrics).ratesOf(text, Date.now()),
      queues: { tasks: gaugeIn(text, 'bylaw_waiting_tasks'), mails: gaugeIn(text, 'bylaw_mail_queue') },
      policy_cache: {
        entries: gaugeIn(text, 'bylaw_policy_cache_entries'),
        made: gaugeIn(text, 'bylaw_policy_cache_made_total'),
      },
      feeds: {
        streams: gaugeIn(text, 'bylaw_feed_streams'),
        log_entries: gaugeIn(text, 'bylaw_change_log_entries'),
      },
      mail_to: app.auth.mailTo === 'SMTP' ? 'smtp' : 'folder',
      warnings: warningsOf(schema),
    };
    ctx.body = { data: status };
  },
});

/** The value of a metric without labels. */
function gaugeIn(text: string, name: string): number | null {
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1];
  return found === undefined ? null : Number(found);
}
