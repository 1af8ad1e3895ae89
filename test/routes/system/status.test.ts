/** The state of the service, for administrators, and the rates of its routes. */
import { describe, expect, test } from 'vitest';
import { RateWindow } from '../../../src/http/observe/route-rates.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth } from '../../support/service.ts';

const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
collections:
  notes:
    fields: { text: string, code: int }
    access: { list: '@record.code = 1 or @record.code = 2 and @record.text = "x"', read: true, create: true }
`;

describeOnBoth(
  'the state of the service',
  (service) => {
    test('admins read the database, the requests of the last minute and the warnings of the schema', async () => {
      const root = await service.user('admin');
      const { status, body, headers } = await root.client.get('/api/_status');
      expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(body.data).toMatchObject({ ready: true, workers: 1, mail_to: 'folder' });
      expect(body.data.queues).toEqual({ tasks: expect.any(Number), mails: 0 });
      expect(body.data.policy_cache).toEqual({ entries: expect.any(Number), made: expect.any(Number) });
      expect(body.data.database.kind).toBe(service.kind);
      expect(Number.parseInt(body.data.database.version, 10)).toBeGreaterThanOrEqual(15);
      expect(body.data.database.bytes).toBeGreaterThan(1e6);
      expect(body.data.warnings.map(({ code, line }: { code: string; line: number }) => [code, line])).toContainEqual([
        'mixed_logic',
        7,
      ]);
      const login = body.data.requests.routes.find(({ route }: { route: string }) => route === '/api/auth/login');
      expect(login).toMatchObject({ method: 'POST', requests: 1, failures: 0 });
      expect(login.p99_ms).toBeGreaterThan(0);
    });

    test('others read nothing', async () => {
      const member = await service.user();
      const root = await service.user('admin');
      expect(outcomeOf(await service.anonymous.get('/api/_status'))).toEqual([401, 'unauthenticated']);
      expect(outcomeOf(await member.client.get('/api/_status'))).toEqual([403, 'forbidden']);
      const limit = { users: ['read'] };
      const made = await root.client.post('/api/auth/keys', { name: 'k', roles: ['admin'], limit });
      const key = service.anonymous.with({ Authorization: `Bearer ${made.body.secret}` });
      expect(outcomeOf(await key.get('/api/_status'))).toEqual([403, 'forbidden']);
    });

    test('a service that is not `bylaw dev` saves no schema and runs no tests', async () => {
      const root = await service.user('admin');
      const version = (await root.client.get('/api/_schema')).body.data.version;
      expect(
        outcomeOf(await root.client.send('PUT', '/api/_schema', { json: { text: SCHEMA, if_match: version } })),
      ).toEqual([404, 'not_found']);
      expect(outcomeOf(await root.client.post('/api/_test', { files: {} }))).toEqual([404, 'not_found']);
      expect(outcomeOf(await root.client.get('/api/_test'))).toEqual([404, 'not_found']);
    });
  },
  { schema: SCHEMA },
);

const line = (route: string, status: number, bucket: number | '+Inf', count: number): string =>
  `bylaw_http_request_duration_seconds_bucket{le="${bucket}",method="GET",route="${route}",status="${status}"} ${count}`;
const metrics = (fast: number, slow: number, failed: number): string =>
  [
    line('/a', 200, 0.01, fast),
    line('/a', 200, 0.1, fast + slow),
    line('/a', 200, '+Inf', fast + slow),
    line('/a', 503, 0.01, 0),
    line('/a', 503, 0.1, 0),
    line('/a', 503, '+Inf', failed),
    line('/b', 200, 0.01, 0),
    line('/b', 200, '+Inf', 0),
  ].join('\n');

describe('rates of the last minute', () => {
  test('the first answer is about the time since the start, later ones about a minute at most', () => {
    const rates = new RateWindow(0);
    expect(rates.ratesOf(metrics(100, 0, 0), 100_000)).toEqual({
      seconds: 100,
      routes: [{ method: 'GET', route: '/a', requests: 100, failures: 0, per_second: 1, p50_ms: 5, p99_ms: 9.9 }],
    });
    for (let at = 105_000; at <= 160_000; at += 5_000) rates.ratesOf(metrics(100, 0, 0), at);
    const { seconds, routes } = rates.ratesOf(metrics(110, 10, 5), 165_000);
    expect(seconds).toBe(60);
    expect(routes).toEqual([
      { method: 'GET', route: '/a', requests: 25, failures: 5, per_second: 0.42, p50_ms: 32.5, p99_ms: 100 },
    ]);
    expect(rates.ratesOf(metrics(110, 10, 5), 300_000)).toEqual({ seconds: 135, routes: [] });
  });
});
