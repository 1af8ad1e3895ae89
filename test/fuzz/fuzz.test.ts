// @module-tag long
/** A few worlds of the fuzz in every test run; `npm run fuzz` is the long form. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import type { Database as StoreDatabase } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { readServerUrl } from '../../src/database/server-url.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { runDoors } from './doors/doors.ts';
import { loadDoors } from './doors/store-modules.ts';
import { FAULTS } from './faults/fault-list.ts';
import { loadCompiler, ROOT } from './policies/compiler.ts';
import { describe as told } from './policies/report.ts';
import { noCounts, type Run, runWorld } from './policies/run.ts';
import type { Database } from './policies/tables.ts';

const SERVER = inject('postgresUrl');

it('the interpreter, both predicates and PostgreSQL agree on every policy', async ({ skip }) => {
  if (SERVER === '') return skip('no PostgreSQL');
  const client = new pg.Client(readServerUrl(await isolatedUrl(SERVER)).config);
  await client.connect();
  const counts = noCounts();
  const isOver = () => counts.decisions > 10_000;
  const run: Run = { compiler: await loadCompiler(), seed: 20260103, counts, isOver };
  try {
    const found = await runWorld(0, { database: client as unknown as Database, backend: 'PostgreSQL' }, run);
    expect(found && told(found)).toBeUndefined();
  } finally {
    await client.end();
  }
  const { decisions, inPostgres, writes, policies, rejected, unknown, pinned } = counts;
  // A fuzz whose policies are refused, or never unknown, compares nothing.
  expect(decisions).toBeGreaterThan(10_000);
  expect(inPostgres).toBe(decisions);
  expect(writes).toBeGreaterThan(decisions / 6);
  expect(pinned).toBeGreaterThan(20);
  expect(rejected).toBeLessThan(policies / 20);
  expect(unknown / decisions).toBeGreaterThan(0.1);
  expect(unknown / decisions).toBeLessThan(0.7);
});

it('a run that compares nothing fails', async () => {
  const args = [join(import.meta.dirname, 'main.ts'), '--seconds', '0', '--no-pglite'];
  // A server of its own would take a second.
  const env = { ...process.env, ...(SERVER !== '' && { TEST_DATABASE_URL: await isolatedUrl(SERVER) }) };
  const { stdout, code } = await promisify(execFile)(process.execPath, args, { env }).then(
    ({ stdout }) => ({ stdout, code: 0 }),
    (error: { readonly stdout: string; readonly code: number }) => error,
  );
  expect(stdout).toMatch(/TOO FEW decisions: 0, expected at least 1\n/);
  expect(code).toBe(1);
});

const KINDS = ['embedded', 'postgres'] as const;

describe.each(KINDS)('the store (%s)', (kind) => {
  const open = async (): Promise<StoreDatabase> =>
    kind === 'embedded' ? openEmbeddedDatabase() : openDatabase({ url: await isolatedUrl(SERVER) });

  it.skipIf(kind === 'postgres' && SERVER === '')(
    'the store allows and denies writes as the definition does',
    async () => {
      const counts = { worlds: 0, writes: 0, allowed: 0 };
      const db = await open();
      try {
        const run = { doors: await loadDoors(), seed: 20260101, counts, isOver: () => counts.writes >= 42 };
        expect(await runDoors(1, db, run)).toBeUndefined();
      } finally {
        await db.close();
      }
      // Rules that allow nothing, or everything, compare nothing.
      expect(counts.writes).toBeGreaterThan(40);
      expect(counts.allowed / counts.writes).toBeGreaterThan(0.1);
      expect(counts.allowed / counts.writes).toBeLessThan(0.9);
    },
    60_000,
  );
});

it('every seeded fault finds its place in the program', () => {
  const lost = FAULTS.filter(({ file, find, put }) => {
    const text = readFileSync(new URL(file, ROOT), 'utf8');
    return text.replace(find, put) === text;
  });
  expect(lost.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
});
