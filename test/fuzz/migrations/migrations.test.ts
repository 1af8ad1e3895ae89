// @module-tag long
/** A short run of the random migrations; `npm run fuzz -- migrations` is the long one. */
import { afterAll, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { KINDS, openKind } from '../../support/store-world.ts';
import { runMigrations } from './run.ts';

const CASES = 8;
const databases: Database[] = [];
afterAll(() => Promise.all(databases.map((db) => db.close())));

it('random migrations lose nothing without consent, continue after interruptions, and end alike on both databases', async () => {
  for (const kind of KINDS) databases.push(await openKind(kind));
  const counts = await runMigrations({ databases, seed: 20, isOver: (count) => count === CASES });
  // Most random changes of a type are refused.
  expect(counts.applied).toBeGreaterThan(CASES / 2);
  expect(counts.refused).toBeGreaterThan(0);
  expect(counts.interrupted).toBeGreaterThan(1);
});
