/**
 * `npm run fuzz -- plans --seconds 60 --seed 1` · `--rows n` of the largest table · `--lists n` of each set of rules ·
 * `--world n` one world alone, `--list n,m` of it some lists alone, `--from n` the worlds from there on · `--few n` the
 * buffers of a page that is not compared, `--causes n` the causes after which the run ends · `--embedded` on the
 * embedded database. Exits with 1 when a form disagrees, when a list of ours reads too much, or too little was compared.
 */
import { startPostgres } from '../../support/postgres.ts';
import { readOptions } from '../../support/run-options.ts';
import { inOwnSchema } from '../doors/own-schema.ts';
import type { ProgramCopy } from '../faults/program-copy.ts';
import { printShortfalls } from '../floor.ts';
import { loaderOf, ROOT } from '../policies/compiler.ts';
import { loadQueryDoors } from '../query/store-modules.ts';
import { embeddedSession, openServerSession } from './buffers.ts';
import { noPlanCounts, type PlanDisagreement, type PlanDoors, type PlanPlace, type PlanRun, runPlans } from './run.ts';

/** The floors, a tenth of what a busy machine compares in a second. */
const LEAST_A_SECOND = { lists: 0.2, forms: 0.6 };
/** A page of so few buffers is never one of too many. */
export const FEW_BUFFERS = 1_500;
const MOST_CAUSES = 5;
const DEFAULT_ROWS = { postgres: '200000', embedded: '60000' };

export async function loadPlanDoors(root: ProgramCopy['root'] = ROOT): Promise<PlanDoors> {
  type StatisticsModule = typeof import('../../../src/records/page/table-statistics.ts');
  const { BackgroundStatistics } = await loaderOf(root)<StatisticsModule>('src/records/page/table-statistics.ts');
  return { ...(await loadQueryDoors(root)), BackgroundStatistics };
}

export async function fuzzPlans(args: readonly string[]): Promise<number> {
  const { values: options } = readOptions('npm run fuzz -- plans', {
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      rows: { type: 'string' },
      lists: { type: 'string', default: '60' },
      few: { type: 'string', default: String(FEW_BUFFERS) },
      world: { type: 'string' },
      list: { type: 'string' },
      from: { type: 'string', default: '0' },
      causes: { type: 'string', default: String(MOST_CAUSES) },
      embedded: { type: 'boolean', default: false },
    },
  });
  const seconds = Number(options.seconds);
  const isOne = options.world !== undefined;
  const counts = noPlanCounts();
  const causes = new Map<string, number>();
  let slower = 0;
  const doors = await loadPlanDoors();
  let end = Number.POSITIVE_INFINITY;
  const note = ({ cause, text, isSlower }: PlanDisagreement): void => {
    causes.set(cause, (causes.get(cause) ?? 0) + 1);
    if (isSlower) slower++;
    console.log(causes.get(cause) === 1 ? text : `again: ${cause}: ${text.split('\n').at(-1)}`);
  };
  const run: PlanRun = {
    doors,
    seed: Number(options.seed),
    counts,
    rows: Number(options.rows ?? DEFAULT_ROWS[options.embedded ? 'embedded' : 'postgres']),
    lists: Number(options.lists),
    few: Number(options.few),
    only: options.list === undefined ? undefined : new Set(options.list.split(',').map(Number)),
    note,
    isKnown: (cause) => causes.has(cause),
    isOver: () => Date.now() > end || causes.size >= Number(options.causes),
  };
  const server = options.embedded ? undefined : await startPostgres({ settings: { shared_buffers: '512MB' } });
  if (!options.embedded && server === undefined) throw new Error('the fuzz of plans needs a PostgreSQL, or --embedded');
  console.log(`seed ${run.seed}, ${seconds} s, ${run.rows} rows`);
  const began = performance.now();
  end = isOne ? end : Date.now() + seconds * 1000;
  try {
    const first = Number(options.world ?? options.from);
    for (let number = first; !run.isOver() && !(isOne && number > first); number++) {
      const work = (place: PlanPlace) => runPlans(number, place, run);
      await (server === undefined ? inEmbedded(doors, work) : inServer(server.url, doors, work));
    }
  } finally {
    await server?.stop();
  }
  for (const [cause, count] of causes) console.log(`${count} × ${cause}`);
  const took = (performance.now() - began) / 1000;
  console.log(`worlds              ${counts.worlds} in ${took.toFixed(0)} s`);
  console.log(
    `lists               ${counts.lists}, of over ${run.few} buffers ${counts.compared}, slow in every form ${counts.slow}`,
  );
  console.log(`forms               ${counts.forms}, cut off ${counts.cutOff}`);
  const found = [...causes.values()].reduce((sum, each) => sum + each, 0);
  console.log(`disagreements       ${found} of ${causes.size} causes, ${slower} also slower (seed ${run.seed})`);
  const least = (of: keyof typeof LEAST_A_SECOND) => (isOne ? 1 : Math.max(1, LEAST_A_SECOND[of] * seconds));
  const shortfalls = printShortfalls([
    { what: 'lists', count: counts.lists, least: least('lists') },
    { what: 'forms', count: counts.forms, least: least('forms') },
    { what: 'forms that end', count: counts.forms - counts.cutOff, least: Math.floor(counts.forms * 0.8) },
  ]);
  return causes.size + shortfalls === 0 ? 0 : 1;
}

type Work = (place: PlanPlace) => Promise<void>;
let schemas = 0;

export async function inServer(url: string, doors: PlanDoors, work: Work): Promise<void> {
  const schema = `plans_${process.pid}_${++schemas}`;
  await inOwnSchema({ url, schema, openDatabase: doors.openDatabase }, async (db) => {
    const own = `${url}&options=${encodeURIComponent(`-c search_path=${schema}`)}`;
    const session = await openServerSession(own);
    try {
      await work({ db, session });
    } finally {
      await session.close();
    }
  });
}

async function inEmbedded(doors: PlanDoors, work: Work): Promise<void> {
  const db = await doors.openDatabase({});
  try {
    await work({ db, session: embeddedSession(db, doors) });
  } finally {
    await db.close();
  }
}
