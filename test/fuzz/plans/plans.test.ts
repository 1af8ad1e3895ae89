// @module-tag long
/** A world of a few thousand rows in every test run; `npm run fuzz -- plans` is the long form. */
import { expect, it } from 'vitest';
import type { Hooks } from '../../../src/records/access-context.ts';
import { openEmbeddedDatabase } from '../../support/embedded/embedded.ts';
import { embeddedSession } from './buffers.ts';
import { FEW_BUFFERS, loadPlanDoors } from './main.ts';
import { noPlanCounts, type PlanDisagreement, runPlans } from './run.ts';

interface SmallRun {
  readonly rows: number;
  readonly lists: number;
  readonly few: number;
}

async function runSmall({ rows, lists, few }: SmallRun, hooks?: Hooks) {
  const doors = await loadPlanDoors();
  const counts = noPlanCounts();
  const found: PlanDisagreement[] = [];
  const db = await openEmbeddedDatabase();
  try {
    const session = embeddedSession(db, doors);
    const note = (disagreement: PlanDisagreement): void => void found.push(disagreement);
    const isOver = () => found.length > 0;
    await runPlans(
      0,
      { db, session },
      { doors, seed: 20260401, counts, rows, lists, few, hooks, note, isKnown: () => false, isOver },
    );
  } finally {
    await db.close();
  }
  return { counts, found };
}

it('every form of a list finds the same bytes, and ours reads about as few buffers as the best', async () => {
  const { counts, found } = await runSmall({ rows: 4_000, lists: 10, few: FEW_BUFFERS });
  expect(found.map(({ text }) => text)).toEqual([]);
  expect(counts.lists).toBeGreaterThan(15);
  expect(counts.forms).toBeGreaterThan(counts.lists);
}, 60_000);

it('the fuzz reports a planner that always walks', async () => {
  const { found } = await runSmall({ rows: 10_000, lists: 30, few: 100 }, { choosesWay: () => undefined });
  expect(found.map(({ cause }) => cause)).toEqual([expect.stringMatching(/^buffers /)]);
}, 60_000);
