// @module-tag long
/**
 * A few worlds of queries in every test run, on one database: on PostgreSQL, or on the embedded one without it.
 * `npm run fuzz -- query` is the long form, on both.
 */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { readServerUrl } from '../../../src/database/server-url.ts';
import { emptySnapshot } from '../../support/embedded/embedded.ts';
import { isolatedUrl } from '../../support/postgres.ts';
import { openKind } from '../../support/service.ts';
import { openEmbeddedLane } from '../policies/embedded-lane.ts';
import type { Lane } from '../policies/run.ts';
import { FEW_ROWS } from '../policies/world.ts';
import { noFilterCounts, runFilters } from './filters.ts';
import { noListCounts, runLists } from './lists.ts';
import { noPageCounts, runPages } from './pages.ts';
import { noRememberedCounts, runRemembered } from './remembered.ts';
import { noServiceCounts, runServiceTaint } from './service-taint.ts';
import { copyWithSmallCounts } from './small-counts.ts';
import { loadQueryCompiler, loadQueryDoors } from './store-modules.ts';

const SERVER = inject('postgresUrl');
const KIND = SERVER === '' ? 'embedded' : 'postgres';

async function inDatabase(work: (db: Database) => Promise<string | undefined>): Promise<string | undefined> {
  const db = await openKind(KIND);
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

describe(`filters (${KIND})`, () => {
  const stops: (() => Promise<void>)[] = [];
  let lane: Lane;

  beforeAll(async () => {
    if (KIND === 'embedded') {
      lane = await openEmbeddedLane(stops, { snapshot: await emptySnapshot() });
      return;
    }
    const client = new pg.Client(readServerUrl(await isolatedUrl(SERVER)).config);
    await client.connect();
    stops.push(() => client.end());
    lane = { database: client as unknown as Lane['database'], backend: 'PostgreSQL' };
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
  });

  it('find what is left to find when all that is hidden has been taken out', async () => {
    const counts = noFilterCounts();
    const run = {
      compiler: await loadQueryCompiler(),
      seed: 20260101,
      counts,
      rows: FEW_ROWS,
      isOver: () => counts.decisions > 5_000,
    };
    expect(await runFilters(0, lane, run)).toBeUndefined();
    // Filters that are rejected, find nothing, or meet nothing hidden compare nothing.
    const { decisions, filters, rejected, found, hidden } = counts;
    expect(decisions).toBeGreaterThan(5_000);
    expect(rejected).toBeLessThan(filters / 3);
    expect(found / decisions).toBeGreaterThan(0.05);
    expect(hidden).toBeGreaterThan(100);
  });
});

describe(`pages and aggregates (${KIND})`, () => {
  const copy = copyWithSmallCounts();
  afterAll(() => copy.remove());

  it('equal the sorted list and the groups of what is left when all that is hidden has been taken out', async () => {
    const counts = noPageCounts();
    const doors = await loadQueryDoors(copy.root);
    const run = { doors, seed: 20260104, counts, callers: 2, isOver: () => false };
    expect(await inDatabase((db) => runPages(0, db, run))).toBeUndefined();
    // Walks of one page, without records, or where nothing is hidden compare nothing.
    const { walks, pages, records, hidden, aggregates, groups, tainted, expanded, capable, estimates } = counts;
    expect(counts.expensive).toBeLessThan(walks / 5);
    expect(walks).toBeGreaterThan(10);
    expect(pages).toBeGreaterThan(1.5 * walks);
    expect(records).toBeGreaterThan(2 * pages);
    for (const count of [hidden, aggregates, tainted, expanded, capable, estimates]) expect(count).toBeGreaterThan(1);
    // Some groups do not meet their `having`.
    expect(3 * groups).toBeGreaterThan(aggregates);
  });

  it('the whole service reveals nothing of hidden records', async () => {
    const counts = noServiceCounts();
    const doors = await loadQueryDoors(copy.root);
    const run = { doors, seed: 20260102, counts, callers: 1, isOver: () => false };
    expect(await inDatabase((db) => runServiceTaint(0, db, run))).toBeUndefined();
    const { requests, errors, changes, expensive } = counts;
    expect(expensive).toBeLessThan(requests / 20);
    expect(requests).toBeGreaterThan(25);
    expect(errors).toBeGreaterThan(1);
    expect(changes).toBeGreaterThan(1);
  });
});

describe(`lists (${KIND})`, () => {
  it('show what the rules and filters leave, in whichever way their pages are found', async () => {
    const counts = noListCounts();
    const run = { doors: await loadQueryDoors(), seed: 20260103, counts, callers: 2, isOver: () => false };
    expect(await inDatabase((db) => runLists(4, db, run))).toBeUndefined();
    // Rules that no index serves, and pages without records, compare nothing.
    const { pages, planned, filtered, unasked, records } = counts;
    expect(pages).toBeGreaterThan(30);
    expect(planned / pages).toBeGreaterThan(0.1);
    expect(filtered).toBeGreaterThan(5);
    expect(unasked / pages).toBeLessThan(0.6);
    expect(records).toBeGreaterThan(pages);
  });
});

describe('remembered plans', () => {
  it('a page of a remembered plan sends the same text and parameters as a plan that is made anew', async () => {
    const counts = noRememberedCounts();
    const doors = await loadQueryDoors();
    const found = await inDatabase((db) => runRemembered(0, db, { doors, seed: 20260104, counts, callers: 3 }));
    expect(found).toBeUndefined();
    expect(counts.compared).toBeGreaterThan(50);
    expect(counts.texts.size).toBeLessThan(counts.compared);
  });
});
