/**
 * `npm run fuzz -- query --seconds 60 --seed 1` · `--world n` one world of filters alone · `--page-world n` one of pages alone ·
 * `--list-world n` one of lists alone ·
 * `--embedded` the embedded database too. Exits with 1 when anything disagrees.
 */
import { parseArgs } from 'node:util';
import pg from 'pg';
import type { Database } from '../../../src/store/database/contract.ts';
import { startPostgres } from '../../support/postgres.ts';
import { openEmbeddedLane } from '../embedded-lane.ts';
import { inOwnSchema } from '../own-schema.ts';
import type { Lane } from '../run.ts';
import { noFilterCounts, runFilters } from './filters.ts';
import { type ListCounts, noListCounts, runLists } from './lists.ts';
import { noPageCounts, type PageCounts, runPages } from './pages.ts';
import { loadQueryDoors, type QueryDoors } from './store-modules.ts';

interface Servers {
  readonly lanes: Lane[];
  readonly urls: readonly string[];
}

export async function fuzzQuery(args: readonly string[]): Promise<number> {
  const { values: options } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      world: { type: 'string' },
      'page-world': { type: 'string' },
      'list-world': { type: 'string' },
      from: { type: 'string', default: '0' },
      embedded: { type: 'boolean', default: false },
    },
  });
  const seed = Number(options.seed);
  const end = Date.now() + Number(options.seconds) * 1000;
  const [counts, pageCounts, listCounts] = [noFilterCounts(), noPageCounts(), noListCounts()];
  let found = 0;
  const isOver = (): boolean => Date.now() > end || found > 0;
  const doors = await loadQueryDoors();
  const run = { compiler: doors.compiler, seed, counts, isOver };
  const pageRun = { doors, seed, counts: pageCounts, isOver };
  const listRun = { doors, seed, counts: listCounts, isOver };
  const note = (disagreement: string | undefined): void => {
    if (disagreement === undefined) return;
    found++;
    console.log(disagreement);
  };
  const named = [options.world, options['page-world'], options['list-world']];
  const isOne = named.some((number) => number !== undefined);
  const [filterTurns, pageTurns, listTurns] = named.map((number) =>
    worldsOf(isOne && number === undefined ? [] : number, options.from),
  ) as [Iterator<number>, Iterator<number>, Iterator<number>];
  const stops: (() => Promise<void>)[] = [];
  const began = performance.now();
  const until = async (turns: Iterator<number>, ask: (number: number) => Promise<string | undefined>) => {
    while (!isOver()) {
      const { value, done } = turns.next();
      if (done) return;
      note(await ask(value));
    }
  };
  try {
    const { lanes, urls } = await openServers(stops);
    if (options.embedded) lanes.push(await openEmbeddedLane(stops, { rest: 1 }));
    const places = options.embedded ? [...urls, undefined] : urls;
    await Promise.all([
      ...lanes.map((lane) => until(filterTurns, (number) => runFilters(number, lane, run))),
      ...places.map((url) =>
        until(pageTurns, (number) => inDatabase({ url, number, doors }, (db) => runPages(number, db, pageRun))),
      ),
      ...places.map((url) =>
        until(listTurns, (number) => inDatabase({ url, number, doors }, (db) => runLists(number, db, listRun))),
      ),
    ]);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
  const seconds = (performance.now() - began) / 1000;
  const { worlds, filters, rejected, decisions, hidden } = counts;
  console.log(`worlds              ${worlds}, of pages ${pageCounts.worlds}`);
  console.log(`filters             ${filters}, without a form or fitting params ${rejected}`);
  console.log(`decisions compared  ${decisions} in ${seconds.toFixed(0)} s, others by what is hidden ${hidden}`);
  console.log(pageLine(pageCounts));
  console.log(listLine(listCounts));
  console.log(`disagreements       ${found} (seed ${seed})`);
  return found === 0 ? 0 : 1;
}

const pageLine = ({ walks, pages, records, aggregates, groups, hidden, tainted }: PageCounts): string =>
  `walks               ${walks}, pages ${pages}, records ${records}, others by what is hidden ${hidden}; ` +
  `aggregates ${aggregates}, groups ${groups}; hidden values changed ${tainted}`;

const listLine = ({ worlds, pages, planned, filtered, records, unasked }: ListCounts): string =>
  `lists               ${worlds} worlds, pages ${pages}, by branches as well ${planned}, with filters ${filtered}, ` +
  `records ${records}, empty ${unasked}`;

/** The one that is named, none, or all from a first one on. */
function* worldsOf(which: string | undefined | readonly [], from: string): Iterator<number> {
  if (typeof which === 'string') yield Number(which);
  if (which !== undefined) return;
  for (let number = Number(from); ; number++) yield number;
}

interface Place {
  /** Of a server; undefined: the embedded database. */
  readonly url: string | undefined;
  readonly number: number;
  readonly doors: QueryDoors;
}
let schemas = 0;

async function inDatabase<T>(
  { url, number, doors: { openDatabase } }: Place,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const schema = `query_${process.pid}_${number}_${++schemas}`;
  if (url !== undefined) return inOwnSchema({ url, schema, openDatabase }, work);
  const db = await openDatabase({});
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

/** With the default collation C, and with ICU's en-US. */
async function openServers(stops: (() => Promise<void>)[]): Promise<Servers> {
  const lanes: Lane[] = [];
  const urls: string[] = [];
  for (const collation of ['c', 'icu'] as const) {
    const server = await startPostgres({ collation });
    if (server === undefined) throw new Error('the fuzz of queries needs a PostgreSQL');
    stops.push(() => server.stop());
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    stops.push(() => client.end());
    lanes.push({ database: client as unknown as Lane['database'], backend: 'PostgreSQL' });
    urls.push(server.url);
  }
  return { lanes, urls };
}
