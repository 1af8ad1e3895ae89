/**
 * `npm run fuzz -- query --seconds 60 --seed 1` · `--world n` one world of filters alone · `--page-world n` one of pages alone ·
 * `--list-world n` one of lists alone · `--remembered-world n` one of remembered plans alone ·
 * `--service-world n` one of the service alone ·
 * `--embedded` on the embedded database, which holds up everything else in its process. Exits with 1 when anything disagrees, or too little
 * was compared.
 */
import { inspect } from 'node:util';
import pg from 'pg';
import type { Database } from '../../../src/database/contract.ts';
import { readServerUrl } from '../../../src/database/server-url.ts';
import { isQueryCanceled } from '../../../src/database/to-store-error.ts';
import { LONG_RUN, startPostgres } from '../../support/postgres.ts';
import { readOptions } from '../../support/run-options.ts';
import { inOwnSchema } from '../doors/own-schema.ts';
import { type Floor, printShortfalls } from '../floor.ts';
import { openEmbeddedLane } from '../policies/embedded-lane.ts';
import type { Lane } from '../policies/run.ts';
import { noFilterCounts, runFilters } from './filters.ts';
import { type ListCounts, noListCounts, runLists } from './lists.ts';
import { noPageCounts, type PageCounts, runPages } from './pages.ts';
import { noRememberedCounts, runRemembered } from './remembered.ts';
import { noServiceCounts, runServiceTaint, type ServiceCounts } from './service-taint.ts';
import { copyWithSmallCounts } from './small-counts.ts';
import { loadQueryDoors, type QueryDoors } from './store-modules.ts';

/** The floor, a tenth of what a busy machine compares in a second. */
const LEAST_A_SECOND = 20;

/** The share of questions that must end in time, for few are left out. */
const TIMELY = 0.95;

type Work = (db: Database) => Promise<string | undefined>;
/** Gives databases without tables. */
interface Place {
  use(doors: QueryDoors, number: number, work: Work): Promise<string | undefined>;
}
interface Places {
  readonly lanes: readonly Lane[];
  readonly places: readonly Place[];
}

export async function fuzzQuery(args: readonly string[]): Promise<number> {
  const { values: options } = readOptions('npm run fuzz -- query', {
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      world: { type: 'string' },
      'page-world': { type: 'string' },
      'list-world': { type: 'string' },
      'remembered-world': { type: 'string' },
      'service-world': { type: 'string' },
      from: { type: 'string', default: '0' },
      embedded: { type: 'boolean', default: false },
    },
  });
  const seed = Number(options.seed);
  const allowedSeconds = Number(options.seconds);
  // The clock starts when the databases are open.
  let end = Number.POSITIVE_INFINITY;
  const [counts, pageCounts] = [noFilterCounts(), noPageCounts()];
  const [listCounts, serviceCounts] = [noListCounts(), noServiceCounts()];
  const rememberedCounts = noRememberedCounts();
  let found = 0;
  const isOver = (): boolean => Date.now() > end || found > 0;
  const copy = copyWithSmallCounts();
  const doors = await loadQueryDoors(copy.root);
  const run = { compiler: doors.compiler, seed, counts, isOver };
  const pageRun = { doors, seed, counts: pageCounts, isOver };
  const listRun = { doors, seed, counts: listCounts, isOver };
  const rememberedRun = { doors, seed, counts: rememberedCounts };
  const serviceRun = { doors, seed, counts: serviceCounts, isOver };
  const note = (disagreement: string | undefined): void => {
    if (disagreement === undefined) return;
    found++;
    console.log(disagreement);
  };
  const { world, 'page-world': pageWorld, 'list-world': listWorld, 'service-world': serviceWorld, from } = options;
  const rememberedWorld = options['remembered-world'];
  const isOne = [world, pageWorld, listWorld, rememberedWorld, serviceWorld].some((one) => one !== undefined);
  const turnsOf = (one: string | undefined) =>
    (isOne && one === undefined ? [] : worldsOf(one, from))[Symbol.iterator]();
  const [filterTurns, pageTurns] = [turnsOf(world), turnsOf(pageWorld)];
  const [listTurns, serviceTurns] = [turnsOf(listWorld), turnsOf(serviceWorld)];
  const rememberedTurns = turnsOf(rememberedWorld);
  const stops: (() => Promise<void>)[] = [];
  const began = performance.now();
  let cutOff = 0;
  const failureOf = (error: Error, world: number): string | undefined => {
    const isTooExpensive = (error as { readonly code?: string }).code === 'query_too_expensive';
    if (!isTooExpensive && !isQueryCanceled(error.cause))
      return `FAILED, seed ${seed}, world ${world}: ${inspect(error)}`;
    // A random rule may take longer than a statement may; the rest of its world is left out.
    cutOff++;
    return undefined;
  };
  /** Runs one world of a kind; returns false after the last. */
  const next = async (turns: Iterator<number>, ask: (number: number) => Promise<string | undefined>) => {
    const { value, done } = turns.next();
    // The other lanes come to their end before the servers stop.
    if (!done) note(await ask(value).catch((error: Error) => failureOf(error, value)));
    return !done;
  };
  try {
    const { lanes, places } = options.embedded ? await openEmbedded(stops) : await openServers(stops);
    end = Date.now() + allowedSeconds * 1000;
    const kinds = [
      ...lanes.map((lane) => () => next(filterTurns, (number) => runFilters(number, lane, run))),
      ...places.flatMap(({ use }, i) => [
        () => next(pageTurns, (number) => use(doors, number, (db) => runPages(number, db, pageRun))),
        () => next(listTurns, (number) => use(doors, number, (db) => runLists(number, db, listRun))),
        () => next(rememberedTurns, (number) => use(doors, number, (db) => runRemembered(number, db, rememberedRun))),
        async () =>
          i === 0 &&
          next(serviceTurns, (number) => use(doors, number, (db) => runServiceTaint(number, db, serviceRun))),
      ]),
    ];
    // The embedded database works in this process, so that kinds of worlds would only hold up each other.
    if (options.embedded) await inTurn(kinds, isOver);
    else await Promise.all(kinds.map((kind) => inTurn([kind], isOver)));
  } finally {
    for (const stop of stops.reverse()) await stop();
    copy.remove();
  }
  const seconds = (performance.now() - began) / 1000;
  const { worlds, filters, rejected, decisions, hidden, slow } = counts;
  console.log(`worlds              ${worlds}, of pages ${pageCounts.worlds}`);
  console.log(
    `filters             ${filters}, without a form or fitting params ${rejected}, given up by the server ${slow}`,
  );
  const all = decisions + pageCounts.decisions;
  const rate = ((all / seconds) * 60) / 1e6;
  console.log(`decisions compared  ${all} in ${seconds.toFixed(0)} s, ${rate.toFixed(2)} M a minute`);
  console.log(`  of filters        ${decisions}, in worlds of few rows others by what is hidden ${hidden}`);
  console.log(`  of pages          ${pageCounts.decisions}`);
  console.log(pageLine(pageCounts));
  console.log(listLine(listCounts));
  console.log(`remembered plans    ${rememberedCounts.compared} pages, ${rememberedCounts.texts.size} texts`);
  console.log(serviceLine(serviceCounts));
  console.log(`worlds cut off      ${cutOff}, by the time limit of a read`);
  console.log(`disagreements       ${found} (seed ${seed})`);
  // A world may take seconds.
  const least = isOne ? 0 : Math.min(1, Math.floor(allowedSeconds / 20));
  const shortfalls = printShortfalls([
    { what: 'decisions', count: all, least: isOne ? 0 : Math.max(1, LEAST_A_SECOND * allowedSeconds) },
    { what: 'worlds of filters', count: worlds, least },
    { what: 'worlds of pages', count: pageCounts.worlds, least },
    { what: 'worlds of lists', count: listCounts.worlds, least },
    { what: 'worlds of requests', count: serviceCounts.worlds, least },
    { what: 'pages of remembered plans', count: rememberedCounts.compared, least },
    timely('worlds', worlds + pageCounts.worlds + listCounts.worlds + serviceCounts.worlds, cutOff, 0.5),
    timely('filters', filters, slow),
    timely('requests', serviceCounts.requests, serviceCounts.expensive),
    timely('walks', pageCounts.walks, pageCounts.expensive),
  ]);
  return found + shortfalls === 0 ? 0 : 1;
}

/** A run whose answers the clock decides compares next to nothing. */
const timely = (of: string, count: number, expensive: number, share = TIMELY): Floor => ({
  what: `${of} that end in time`,
  count: count - expensive,
  least: Math.floor(count * share),
});

/** Until time is up, or none of them has more to do. */
async function inTurn(kinds: readonly (() => Promise<boolean>)[], isOver: () => boolean): Promise<void> {
  for (;;) {
    let isMore = false;
    for (const kind of kinds) isMore = (!isOver() && (await kind())) || isMore;
    if (!isMore || isOver()) return;
  }
}

const pageLine = (counts: PageCounts): string => {
  const {
    walks,
    pages,
    records,
    expanded,
    capable,
    estimates,
    changing,
    aggregates,
    groups,
    hidden,
    tainted,
    expensive,
  } = counts;
  return [
    `walks               ${walks}, others by what is hidden ${hidden}, with writes between their pages ${changing}, too expensive ${expensive}`,
    `pages               ${pages}, records ${records}, with relations ${expanded}, with capabilities ${capable}, estimates ${estimates}`,
    `aggregates          ${aggregates}, groups ${groups}`,
    `hidden changes      ${tainted}`,
  ].join('\n');
};

const listLine = ({ worlds, pages, planned, filtered, records, unasked }: ListCounts): string =>
  `lists               ${worlds} worlds, pages ${pages}, by branches as well ${planned}, with filters ${filtered}, ` +
  `records ${records}, empty ${unasked}`;

const serviceLine = ({ worlds, requests, errors, changes, expensive }: ServiceCounts): string =>
  `service             worlds ${worlds}, requests ${requests} in two databases each, errors ${errors}, hidden changes ${changes}, too expensive ${expensive}`;

/** The one that is named, or all from a first one on. */
function* worldsOf(one: string | undefined, from: string): Iterable<number> {
  if (one !== undefined) {
    yield Number(one);
    return;
  }
  for (let number = Number(from); ; number++) yield number;
}

/** With the default collation C, and with ICU's en-US. */
async function openServers(stops: (() => Promise<void>)[]): Promise<Places> {
  const lanes: Lane[] = [];
  const places: Place[] = [];
  for (const collation of ['c', 'icu'] as const) {
    const server = await startPostgres({ collation, settings: LONG_RUN });
    if (server === undefined) throw new Error('the fuzz of queries needs a PostgreSQL');
    stops.push(() => server.stop());
    const client = new pg.Client(readServerUrl(server.url).config);
    await client.connect();
    stops.push(() => client.end());
    lanes.push({ database: client as unknown as Lane['database'], backend: 'PostgreSQL' });
    places.push({ use: (doors, number, work) => inServer(server.url, { doors, number }, work) });
  }
  return { lanes, places };
}

let schemas = 0;

function inServer(url: string, { doors, number }: { doors: QueryDoors; number: number }, work: Work): ReturnType<Work> {
  const schema = `query_${process.pid}_${number}_${++schemas}`;
  return inOwnSchema({ url, schema, openDatabase: doors.openDatabase }, work);
}

async function openEmbedded(stops: (() => Promise<void>)[]): Promise<Places> {
  return { lanes: [await openEmbeddedLane(stops)], places: [{ use: (doors, _, work) => inEmbedded(doors, work) }] };
}

async function inEmbedded({ openDatabase }: QueryDoors, work: Work): Promise<string | undefined> {
  const db = await openDatabase({});
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}
