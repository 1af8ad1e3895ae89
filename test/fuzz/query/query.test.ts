/** A few worlds of queries in every test run; `npm run fuzz -- query` is the long form. */
import pg from 'pg';
import { expect, it } from 'vitest';
import { startPostgres } from '../../support/postgres.ts';
import type { Database } from '../tables.ts';
import { loadQueryCompiler } from './compiler.ts';
import { noFilterCounts, runFilters } from './filters.ts';

const WORLDS = 3;

it('finds by a filter what is left to find when all that is hidden has been taken out', async ({ skip }) => {
  const server = await startPostgres();
  if (server === undefined) return skip('no PostgreSQL');
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const counts = noFilterCounts();
  const run = { compiler: await loadQueryCompiler(), seed: 20260101, counts, isOver: () => false };
  try {
    const lane = { database: client as unknown as Database, backend: 'PostgreSQL' } as const;
    for (let number = 0; number < WORLDS; number++) expect(await runFilters(number, lane, run)).toBeUndefined();
  } finally {
    await client.end();
    await server.stop();
  }
  // Filters that are rejected, find nothing, or meet nothing hidden compare nothing.
  const { decisions, filters, rejected, found, hidden } = counts;
  expect(decisions).toBeGreaterThan(10_000);
  expect(rejected).toBeLessThan(filters / 3);
  expect(found / decisions).toBeGreaterThan(0.05);
  expect(hidden).toBeGreaterThan(300);
}, 120_000);
