/**
 * How many filtered, policy-guarded lists a second does the service answer, next to a hand-written node:http + pg server on the same database?
 * 100,000 rows, pages of 20, 64 connections, rounds in turn so that a noisy machine is noisy for both.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import { call } from './movies/client.ts';
import { type LoadResult, load } from './support/load.ts';
import { median } from './support/measure.ts';
import { startBylaw, startServer } from './support/server.ts';

const ROWS = 100_000;
const CONNECTIONS = 64;
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

async function fill(url: string, owner: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `INSERT INTO items (id, created_at, updated_at, title, status, score, rating, pinned, due_at, owner_id)
     SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), 'item ' || n,
            CASE WHEN n % 3 = 0 THEN 'draft' ELSE 'published' END, n % 1000, n / 7.0, n % 10 = 0, now() + n * interval '1 minute', $1
     FROM generate_series(1, ${ROWS}) n`,
    [owner],
  );
  await client.query('ANALYZE items');
  await client.end();
}

interface Options {
  readonly seconds: number;
}

async function run({ seconds }: Options): Promise<void> {
  const postgres = await startPostgres();
  if (postgres === undefined)
    throw new Error('this bench needs PostgreSQL: install its binaries or set TEST_DATABASE_URL');
  const data = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
  const children: ChildProcess[] = [];
  try {
    const url = await isolatedUrl(postgres.url);
    const bylaw = await startBylaw({ schema: here('./servers/items.yaml'), databaseUrl: url, data });
    children.push(bylaw.process);
    const user = { email: 'bench@example.com', password: 'seven-samurai-1954' };
    const { id } = (await call(`${bylaw.url}/api/auth/register`, { method: 'POST', body: user })).body.user;
    const token = (await call(`${bylaw.url}/api/auth/login`, { method: 'POST', body: user })).body.access_token;
    await fill(url, id);
    const handwritten = await startServer(here('./servers/handwritten.ts'), [url, token, id]);
    children.push(handwritten.process);

    const path = (n: number) => `/api/items?status=published&offset=${(n % 10) * 20}`;
    const same = await Promise.all(
      [bylaw, handwritten].map(async (server) =>
        (await call(server.url + path(3), { token })).body.data.map((row: { id: string }) => row.id),
      ),
    );
    if (JSON.stringify(same[0]) !== JSON.stringify(same[1]))
      throw new Error('the two servers answer differently; nothing to compare');

    const contenders = [
      { name: 'bylaw (Koa, policies, JWT)', url: bylaw.url, results: [] as LoadResult[] },
      { name: 'hand-written (node:http + pg)', url: handwritten.url, results: [] as LoadResult[] },
    ];
    const rounds = 5;
    for (let round = 0; round <= rounds; round++) {
      for (const contender of contenders) {
        const result = await load({
          url: contender.url,
          path,
          headers: { authorization: `Bearer ${token}` },
          connections: CONNECTIONS,
          seconds: seconds / rounds / 2,
        });
        if (result.statuses.size !== 1 || !result.statuses.has(200))
          throw new Error(`${contender.name} answered ${JSON.stringify([...result.statuses])}`);
        // Round 0 warms up.
        if (round > 0) contender.results.push(result);
      }
    }
    const rates = contenders.map(({ results }) => median(results.map((result) => result.requestsPerSecond)));
    contenders.forEach(({ name, results }, i) => {
      const of = (key: 'p50' | 'p99') => median(results.map((result) => result[key])).toFixed(1);
      console.log(
        `${name.padEnd(30)} ${rates[i]!.toFixed(0).padStart(6)} requests/s   p50 ${of('p50')} ms   p99 ${of('p99')} ms` +
          `   ${(rates[i]! / rates[1]!).toFixed(2)} ×`,
      );
    });
  } finally {
    for (const child of children) child.kill('SIGTERM');
    await postgres.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

export default {
  name: 'list',
  question: 'requests/s of a filtered, policy-guarded list, next to a hand-written server',
  run,
};
