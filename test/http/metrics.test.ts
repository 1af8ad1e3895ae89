import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/http/observe/metrics.ts';
import { RequestDurations } from '../../src/http/observe/request-record.ts';

const NAME = 'bylaw_http_request_duration_seconds';

test('the histogram counts by route, method and status, each bucket with those below it', async () => {
  const registry = new Registry();
  const durations = new RequestDurations();
  registry.registerMetric(durations as never);
  const observe = (method: string, statusCode: number, seconds: number): void =>
    durations.observe(
      { method, res: { statusCode }, state: { route: { path: '/api/:collection' } } } as never,
      seconds,
    );
  for (const seconds of [0.0005, 0.001, 0.0011, 0.3, 99]) observe('GET', 200, seconds);
  observe('GET', 404, 1);
  observe('HEAD', 200, 1);
  const lines = (await registry.metrics()).split('\n');
  const labels = 'method="GET",route="/api/:collection",status="200"';
  expect(lines.slice(0, 2)).toEqual([
    `# HELP ${NAME} Time from the arrival of a request to the end of its response.`,
    `# TYPE ${NAME} histogram`,
  ]);
  expect(lines.slice(2, 18)).toEqual([
    ...[
      ['0.001', 2],
      ['0.0025', 3],
      ['0.005', 3],
      ['0.01', 3],
      ['0.025', 3],
      ['0.05', 3],
      ['0.1', 3],
      ['0.25', 3],
      ['0.5', 4],
      ['1', 4],
      ['2.5', 4],
      ['5', 4],
      ['10', 4],
      ['+Inf', 5],
    ].map(([le, count]) => `${NAME}_bucket{le="${le}",${labels}} ${count}`),
    `${NAME}_sum{${labels}} 99.3026`,
    `${NAME}_count{${labels}} 5`,
  ]);
  expect(lines).toContain(`${NAME}_count{method="GET",route="/api/:collection",status="404"} 1`);
  expect(lines).toContain(`${NAME}_count{method="HEAD",route="/api/:collection",status="200"} 1`);
});

test('the services of a process share its timer of the event loop, and have counts of their own', async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  const name = 'nodejs_eventloop_lag_p99_seconds';
  expect(one.registry.getSingleMetric(name)).toBe(other.registry.getSingleMetric(name));
  expect(await other.read()).toContain(`# TYPE ${name} gauge`);
  one.countTaken('posts');
  expect(await one.read()).toContain('bylaw_dry_run_conflicts_total{collection="posts"} 1');
  expect(await other.read()).not.toContain('collection="posts"');
});
