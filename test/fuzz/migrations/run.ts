/**
 * `npm run fuzz -- migrations --seconds 60 --seed 1`: random rows under a random schema, and a random migration to another. It is
 * interrupted somewhere and begun again; nothing is lost unasked, and both databases end alike.
 */
import assert from 'node:assert/strict';
import type { Database } from '../../../src/database/contract.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { isolatedUrl, LONG_RUN, startPostgres } from '../../support/postgres.ts';
import { readOptions } from '../../support/run-options.ts';
import { printShortfalls } from '../floor.ts';
import { type Counts, MigrationCase } from './check.ts';

export interface MigrationFuzz {
  readonly databases: readonly Database[];
  readonly seed: number;
  isOver(count: number): boolean;
}

/** Throws what does not hold, with the case. */
export async function runMigrations({ databases, seed, isOver }: MigrationFuzz): Promise<Counts> {
  const counts: Counts = { applied: 0, refused: 0, failed: 0, interrupted: 0 };
  for (let n = 0; !isOver(n); n++) {
    const one = new MigrationCase(seed + n);
    try {
      const outcomes = [];
      for (const db of databases) outcomes.push(await one.run(db, counts));
      for (const outcome of outcomes.slice(1)) assert.deepEqual(outcome, outcomes[0], 'both databases end alike');
    } catch (error) {
      throw new Error(`${one.describe()}\n${error instanceof Error ? error.stack : String(error)}`, { cause: error });
    }
  }
  return counts;
}

export async function fuzzMigrations(argv: readonly string[]): Promise<number> {
  const { values } = readOptions('npm run fuzz -- migrations', {
    args: [...argv],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    },
  });
  const server = await startPostgres({ settings: LONG_RUN });
  if (server === undefined) return 1;
  const databases = [
    await openDatabase({ url: await isolatedUrl(server.url), pipelines: 1, poolSize: 2 }),
    await openDatabase({}),
  ];
  const end = Date.now() + Number(values.seconds) * 1_000;
  try {
    const counts = await runMigrations({ databases, seed: Number(values.seed), isOver: () => Date.now() > end });
    console.log(
      `seed ${values.seed}: ${counts.applied} migrations applied, ${counts.refused} refused, ` +
        `${counts.failed} failed as injected, ${counts.interrupted} interrupted`,
    );
    const least = Math.max(1, Math.floor(Number(values.seconds) / 10));
    return printShortfalls([{ what: 'migrations', count: counts.applied, least }]) === 0 ? 0 : 1;
  } catch (error) {
    console.log(error instanceof Error ? error.message : error);
    return 1;
  } finally {
    for (const db of databases) await db.close();
    await server.stop();
  }
}
