/** A few worlds of the fuzz in every test run; `npm run fuzz` is the long form. */
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { expect, it } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import { loadCompiler, ROOT } from './compiler.ts';
import { FAULTS } from './fault-list.ts';
import { describe } from './report.ts';
import { noCounts, type Run, runWorld } from './run.ts';
import type { Database } from './tables.ts';

const WORLDS = 3;

it('finds no policy on which the interpreter, both predicates and PostgreSQL disagree', async ({ skip }) => {
  const server = await startPostgres();
  if (server === undefined) return skip('no PostgreSQL');
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const run: Run = { compiler: await loadCompiler(), seed: 20260101, counts: noCounts(), isOver: () => false };
  try {
    for (let number = 0; number < WORLDS; number++) {
      const found = await runWorld(number, { database: client as unknown as Database, backend: 'PostgreSQL' }, run);
      expect(found && describe(found)).toBeUndefined();
    }
  } finally {
    await client.end();
    await server.stop();
  }
  const { decisions, inDatabase, policies, rejected, unknown, truths } = run.counts;
  // A fuzz whose policies are refused, or never unknown, compares nothing.
  expect(decisions).toBeGreaterThan(50_000);
  expect(inDatabase).toBeGreaterThan(decisions / 2);
  expect(rejected).toBeLessThan(policies / 20);
  expect(unknown / truths).toBeGreaterThan(0.1);
  expect(unknown / truths).toBeLessThan(0.7);
}, 120_000);

it('has no seeded fault whose place in the compiler is gone', () => {
  const lost = FAULTS.filter(({ file, find, put }) => {
    const text = readFileSync(new URL(file, ROOT), 'utf8');
    return text.replace(find, put) === text;
  });
  expect(lost.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
});
