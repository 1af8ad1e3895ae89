/**
 * Does the fuzz see anything at all? The compiler is copied to a temporary folder, a fault is written into the copy, and the copy is fuzzed until it is
 * caught. Nothing in the program knows of it.
 */
import pg from 'pg';
import { readServerUrl } from '../../../src/database/server-url.ts';
import { isolatedUrl, startPostgres } from '../../support/postgres.ts';
import { FEED_FAULTS } from '../changes/feed-fault-list.ts';
import { loadFeedModules } from '../changes/feed-modules.ts';
import { FeedFuzz } from '../changes/run-feeds.ts';
import { DoorLane } from '../doors/door-lane.ts';
import { KEPT_FAULTS } from '../doors/kept-fault-list.ts';
import { inOwnSchema } from '../doors/own-schema.ts';
import { REFERRING_FAULTS } from '../doors/referring-fault-list.ts';
import { loadDoors } from '../doors/store-modules.ts';
import { FEW_BUFFERS, inServer, loadPlanDoors } from '../plans/main.ts';
import { EXPAND_FAULTS, PLAN_FAULTS } from '../plans/plan-fault-list.ts';
import { noPlanCounts, type PlanDisagreement, runPlans } from '../plans/run.ts';
import { loadCompiler } from '../policies/compiler.ts';
import { type Disagreement, type Lane, noCounts, type Run, runWorld } from '../policies/run.ts';
import { FEW_ROWS, MANY_ROWS } from '../policies/world.ts';
import { QUERY_FAULTS } from '../query/fault-list.ts';
import { noFilterCounts, runFilters } from '../query/filters.ts';
import { LIST_FAULTS } from '../query/list-fault-list.ts';
import { noListCounts, runLists } from '../query/lists.ts';
import { noPageCounts, runPages } from '../query/pages.ts';
import { noRememberedCounts, runRemembered } from '../query/remembered.ts';
import { noServiceCounts, runServiceTaint } from '../query/service-taint.ts';
import { makeCountsSmall } from '../query/small-counts.ts';
import { loadQueryDoors } from '../query/store-modules.ts';
import type { Fault } from './fault.ts';
import { FAULTS } from './fault-list.ts';
import { ProgramCopy } from './program-copy.ts';

const SECONDS_EACH = 60;
/**
 * Processor time of this process, so that a busy machine gives a fault as much work: about a minute
 * of an idle machine.
 */
const PROCESSOR_SECONDS_EACH = 25;
type Outcome = 'caught' | 'missed' | 'equivalent' | 'not found';

/**
 * `only`: words, one of which is in the file or name of a fault.
 * The exit code: 0 when every fault is caught but those that are named as equivalent, and every one could be put in.
 */
export async function runFaults({ only, seed }: { only?: string | undefined; seed: number }): Promise<number> {
  const words = only?.split(',') ?? [''];
  const faults = FAULTS.filter(({ name, file }) => words.some((word) => `${file} ${name}`.includes(word)));
  const servers = [await startPostgres({ collation: 'c' }), await startPostgres({ collation: 'icu' })];
  const lanes: Lane[] = [];
  const clients: pg.Client[] = [];
  for (const server of servers) {
    if (server === undefined) throw new Error('the seeded faults need a PostgreSQL: half of them show only there');
    const client = new pg.Client(readServerUrl(server.url).config);
    await client.connect();
    clients.push(client);
    lanes.push({ database: client as unknown as Lane['database'], backend: 'PostgreSQL' });
  }
  const outcomes: Outcome[] = [];
  const began = performance.now();
  const url = servers[0]!.url;
  for (const fault of faults) outcomes.push(await tryFault(fault, { lanes, url, seed }));
  for (const client of clients) await client.end();
  for (const server of servers) await server?.stop();
  const count = (wanted: Outcome): number => outcomes.filter((outcome) => outcome === wanted).length;
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(
    `caught ${count('caught')} of ${faults.length - count('equivalent')}, equivalent ${count('equivalent')}, seed ${seed}, ${seconds} s`,
  );
  return count('missed') + count('not found') > 0 ? 1 : 0;
}

async function tryFault(fault: Fault, grounds: Grounds): Promise<Outcome> {
  const label = `${fault.file.split('/').at(-1)}: ${fault.name}`;
  const copy = new ProgramCopy();
  try {
    if (!copy.change(fault)) {
      console.log(`NOT FOUND  ${label}: the text that it changes is no longer there`);
      return 'not found';
    }
    if (fault.equivalent !== undefined) {
      console.log(`equivalent       ${label}: ${fault.equivalent}`);
      return 'equivalent';
    }
    const began = performance.now();
    const found = await searchOf(fault)(copy, grounds);
    const seconds = ((performance.now() - began) / 1000).toFixed(1).padStart(5);
    const how = wordsOf(found).replaceAll(/\s+/g, ' ').slice(0, 120);
    console.log(`${found ? 'caught' : 'MISSED'} ${seconds} s  ${label}  ${how}`);
    return found ? 'caught' : 'missed';
  } finally {
    copy.remove();
  }
}

type Found = Disagreement | Error | string;
type Search = (copy: ProgramCopy, grounds: Grounds) => Promise<Found | undefined>;

function searchOf(fault: Fault): Search {
  if (FEED_FAULTS.includes(fault)) return feedCopy;
  if (EXPAND_FAULTS.includes(fault)) return (copy, grounds) => planCopy(copy, grounds, true);
  if (PLAN_FAULTS.includes(fault)) return (copy, grounds) => planCopy(copy, grounds, false);
  if (LIST_FAULTS.includes(fault)) return listCopy;
  if (QUERY_FAULTS.includes(fault)) return queryCopy;
  if (KEPT_FAULTS.includes(fault) || REFERRING_FAULTS.includes(fault)) return writeToCopy;
  const isOfStore = /^src\/(?:database|records)\//.test(fault.file) || fault.file === 'src/policy/access.ts';
  return isOfStore ? writeToCopy : fuzzCopy;
}

function wordsOf(found: Found | undefined): string {
  if (found === undefined) return '';
  if (typeof found === 'string') return found.split('\n', 1)[0]!;
  return found instanceof Error ? found.message.split('\n', 1)[0]! : `${found.backend}: ${found.text}`;
}

interface Grounds {
  readonly lanes: readonly Lane[];
  readonly url: string;
  readonly seed: number;
}

/** Returns true once a fault has had its time. */
function timeLimit(): () => boolean {
  const end = Date.now() + SECONDS_EACH * 1000;
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return Date.now() > end && user + system > PROCESSOR_SECONDS_EACH * 1e6;
  };
}

/** The disagreement that a round finds in a copy. */
type Round = (number: number) => Promise<string | Disagreement | undefined>;

/** A transaction that a busy machine has ended shows nothing of the fault. */
function unlessLate(error: unknown): undefined {
  if ((error as { readonly kind?: string }).kind !== 'unavailable') throw error;
}

/** Asks until something is found, or the time is over. A fault may also break the copy altogether. */
async function firstFound(begin: (isOver: () => boolean) => Promise<Round>): Promise<Found | undefined> {
  const isOver = timeLimit();
  try {
    const round = await begin(isOver);
    for (let number = 0; !isOver(); number++) {
      const found = await round(number).catch(unlessLate);
      if (found !== undefined) return found;
    }
  } catch (error) {
    return error as Error;
  }
  return undefined;
}

/** A fault of the store shows at its doors. */
function writeToCopy(copy: ProgramCopy, { url, seed }: Grounds): Promise<Found | undefined> {
  return firstFound(async (isOver) => {
    const doors = await loadDoors(copy.root);
    const lane = new DoorLane(url, { doors, seed, counts: { worlds: 0, writes: 0, allowed: 0 }, isOver });
    return () => lane.next();
  });
}

/** A fault of queries shows in what filters find and in what pages and aggregates say. */
function queryCopy(copy: ProgramCopy, { lanes, url, seed }: Grounds): Promise<Found | undefined> {
  return firstFound(async (isOver) => {
    makeCountsSmall(copy);
    const doors = await loadQueryDoors(copy.root);
    const { openDatabase } = doors;
    const filters = { compiler: doors.compiler, seed, counts: noFilterCounts(), rows: FEW_ROWS, isOver };
    const pages = { doors, seed, counts: noPageCounts(), isOver };
    const service = { doors, seed, counts: noServiceCounts(), isOver };
    return async (number) => {
      const place = { url, schema: `pages_${process.pid}_${number}`, openDatabase };
      return (
        (await runFilters(number, lanes[number % lanes.length]!, filters)) ??
        (await inOwnSchema(place, (db) => runPages(number, db, pages))) ??
        (await inOwnSchema(place, (db) => runServiceTaint(number, db, service)))
      );
    };
  });
}

/** A fault of the ways to a page shows in lists. */
function listCopy(copy: ProgramCopy, { url, seed }: Grounds): Promise<Found | undefined> {
  return firstFound(async (isOver) => {
    const doors = await loadQueryDoors(copy.root);
    const lists = { doors, seed, counts: noListCounts(), isOver };
    const remembered = { doors, seed, counts: noRememberedCounts() };
    return async (number) => {
      const place = { url, schema: `lists_${process.pid}_${number}`, openDatabase: doors.openDatabase };
      return (
        (await inOwnSchema(place, (db) => runLists(number, db, lists))) ??
        (await inOwnSchema(place, (db) => runRemembered(number, db, remembered)))
      );
    };
  });
}

/** A fault of the cost of a page shows in tables of some ten thousand rows. */
const PLAN_ROWS = 50_000;
const LISTS_OF_RULES = 40;

function planCopy(copy: ProgramCopy, { url, seed }: Grounds, isExpanded: boolean): Promise<Found | undefined> {
  return firstFound(async (isLate) => {
    const doors = await loadPlanDoors(copy.root);
    let found: string | undefined;
    const isOver = () => found !== undefined || isLate();
    const note = ({ cause }: PlanDisagreement): void => {
      found ??= cause;
    };
    const run = {
      doors,
      usual: await loadPlanDoors(),
      seed,
      counts: noPlanCounts(),
      rows: PLAN_ROWS,
      lists: LISTS_OF_RULES,
      isExpanded,
      few: FEW_BUFFERS,
      note,
      isKnown: () => true,
      isOver,
    };
    return async (number) => {
      await inServer(url, doors, (place) => runPlans(number, place, run));
      return found;
    };
  });
}

/** A fault of the feeds shows in the copies that subscribers keep. */
async function feedCopy(copy: ProgramCopy, { url, seed }: Grounds): Promise<Found | undefined> {
  const closing: (() => Promise<void>)[] = [];
  const found = await firstFound(async () => {
    const modules = await loadFeedModules(copy.root);
    const own = await isolatedUrl(url);
    const db = await modules.openDatabase({ url: own });
    closing.push(() => db.close());
    const fuzz = await FeedFuzz.open(db, modules, { url: own, root: copy.root });
    closing.push(() => fuzz.close());
    return (number) => fuzz.run(number, seed);
  });
  for (const close of closing.toReversed()) await close().catch(() => undefined);
  return found;
}

async function fuzzCopy(copy: ProgramCopy, { lanes, seed }: Grounds): Promise<Found | undefined> {
  const isLate = timeLimit();
  let found: Found | undefined;
  try {
    const compiler = await loadCompiler(copy.root);
    const run: Run = {
      compiler,
      seed,
      counts: noCounts(),
      shrinks: false,
      // Among many records, chains of ancestors are longer than the longest that counts.
      rowsOf: (world) => (world % 6 === 5 ? MANY_ROWS / 2 : FEW_ROWS),
      isOver: () => found !== undefined || isLate(),
    };
    let next = 0;
    const each = async (lane: Lane): Promise<void> => {
      while (!run.isOver()) found = (await runWorld(next++, lane, run)) ?? found;
    };
    // Each lane comes to its end, so that the next fault finds it at rest.
    await Promise.all(
      lanes.map((lane) =>
        each(lane).catch((error: unknown) => {
          found ??= error as Error;
        }),
      ),
    );
  } catch (error) {
    // A fault may also break the compiler altogether.
    return error as Error;
  }
  return found;
}
