/**
 * `npm run fuzz -- --seconds 60 --seed 1` · `--world n` one world alone · `--from n` the worlds from there on · `--faults [--only part,part]` ·
 * `--icu` both servers with ICU's en-US · `--no-pglite`
 * Beside the policies, the store's own doors are asked: random creates and updates on the first PostgreSQL.
 * Exits with 1 when anything disagrees, or too little was compared.
 * `npm run fuzz -- http …`: hostile requests instead, see http/run.ts; `query …`: queries; `migrations …`: migrations;
 * `writes …`: writes alone; `changes …`: feeds; `plans …`: the forms of lists; `solver …`: pairs of policies.
 */
import pg from 'pg';
import { readServerUrl } from '../../src/database/server-url.ts';
import { LONG_RUN, startPostgres } from '../support/postgres.ts';
import { readOptions } from '../support/run-options.ts';
import { fuzzChanges } from './changes/main.ts';
import { DoorLane } from './doors/door-lane.ts';
import type { DoorCounts } from './doors/doors.ts';
import { fuzzWrites } from './doors/main.ts';
import { loadDoors } from './doors/store-modules.ts';
import { runFaults } from './faults/run-faults.ts';
import { printShortfalls } from './floor.ts';
import { fuzzFrontEnd } from './frontend/frontend.ts';
import { fuzzHttp } from './http/run.ts';
import { fuzzMigrations } from './migrations/run.ts';
import { fuzzPlans } from './plans/main.ts';
import { loadCompiler } from './policies/compiler.ts';
import { openEmbeddedLane } from './policies/embedded-lane.ts';
import { describe } from './policies/report.ts';
import { type Disagreement, type Lane, noCounts, type Run, runWorld } from './policies/run.ts';
import { Shapes } from './policies/shapes.ts';
import { FEW_ROWS, MANY_ROWS } from './policies/world.ts';
import { fuzzQuery } from './query/main.ts';
import { fuzzSolver } from './solver/run.ts';

/** The commands that read their own options. */
const COMMANDS: Readonly<Record<string, (args: readonly string[]) => number | Promise<number>>> = {
  http: fuzzHttp,
  query: fuzzQuery,
  migrations: fuzzMigrations,
  plans: fuzzPlans,
  solver: fuzzSolver,
  changes: fuzzChanges,
  writes: fuzzWrites,
};
const [first = '', ...others] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined;
const { values: options } = readOptions(
  'npm run fuzz --',
  {
    args: command === undefined ? process.argv.slice(2) : [],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      world: { type: 'string' },
      from: { type: 'string', default: '0' },
      faults: { type: 'boolean', default: false },
      only: { type: 'string' },
      icu: { type: 'boolean', default: false },
      'no-pglite': { type: 'boolean', default: false },
      shapes: { type: 'boolean', default: false },
    },
  },
  [`or one of its parts: npm run fuzz -- ${Object.keys(COMMANDS).join(' | ')} --help`],
);
const LANES = 2;
const MOST_DISAGREEMENTS = 3;
/** The floors, a tenth of what a busy machine does in a second. */
const LEAST_A_SECOND = { decisions: 500, doorWrites: 0.1, texts: 20 };
/** The share of the seconds for texts that are not policies. */
const FRONT_END_SHARE = 0.1;

process.exitCode = await main();

async function main(): Promise<number> {
  if (command !== undefined) return command(others);
  return options.faults ? runFaults({ only: options.only, seed: Number(options.seed) }) : fuzz();
}

async function fuzz(): Promise<number> {
  const seed = Number(options.seed);
  const seconds = Number(options.seconds);
  const frontEndFailures = options.world === undefined ? frontEnd({ seed, seconds: seconds * FRONT_END_SHARE }) : 0;
  // The clock starts when the lanes are open.
  let end = Number.POSITIVE_INFINITY;
  const found: Disagreement[] = [];
  const causes = new Map<string, number>();
  const shapes = new Shapes();
  const run: Run = {
    compiler: await loadCompiler(),
    seed,
    counts: noCounts(),
    shapes,
    rowsOf: (world) => (world % 4 === 0 ? FEW_ROWS : MANY_ROWS),
    isOver: () => Date.now() > end || found.length >= MOST_DISAGREEMENTS,
  };
  const doorCounts: DoorCounts = { worlds: 0, writes: 0, allowed: 0 };
  let doorFailures = 0;
  let hasServer = false;
  console.log(`seed ${seed}, ${seconds} s`);
  const stops: (() => Promise<void>)[] = [];
  const began = performance.now();
  try {
    const { lanes, url } = await openLanes(stops);
    end = Date.now() + seconds * 1000 * (1 - FRONT_END_SHARE);
    hasServer = url !== '';
    const doors = new DoorLane(url, { doors: await loadDoors(), seed, counts: doorCounts, isOver: () => run.isOver() });
    const throughDoors = async () => {
      while (url !== '' && options.world === undefined && !run.isOver() && doorFailures < MOST_DISAGREEMENTS) {
        const start = performance.now();
        const disagreement = await doors.next();
        if (disagreement !== undefined) {
          doorFailures++;
          console.log(disagreement);
        }
        await new Promise((resolve) => setTimeout(resolve, 2 * (performance.now() - start)));
      }
    };
    const writing = throughDoors();
    let next = Number(options.world ?? options.from);
    const last = options.world === undefined ? Number.POSITIVE_INFINITY : next;
    await Promise.all(
      lanes.map(async (lane) => {
        while (!run.isOver() && next <= last) {
          const disagreement = await runWorld(next++, lane, run);
          if (disagreement === undefined) continue;
          const key = causeOf(disagreement);
          causes.set(key, (causes.get(key) ?? 0) + 1);
          if (causes.get(key)! > 1) continue;
          found.push(disagreement);
          console.log(describe(disagreement));
        }
      }),
    );
    await writing;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
  for (const [cause, count] of causes) console.log(`${count} × ${cause}`);
  summarise({
    run,
    shapes,
    found: found.length + doorFailures,
    seconds: (performance.now() - began) / 1000,
    doorCounts,
  });
  const isOne = options.world !== undefined;
  const shortfalls = printShortfalls([
    { what: 'decisions', count: run.counts.decisions, least: isOne ? 1 : floorOf('decisions', seconds) },
    {
      what: 'writes by the store',
      count: doorCounts.writes,
      least: isOne || !hasServer ? 0 : floorOf('doorWrites', seconds),
    },
  ]);
  return found.length + doorFailures + frontEndFailures + shortfalls > 0 ? 1 : 0;
}

function floorOf(what: keyof typeof LEAST_A_SECOND, seconds: number): number {
  return Math.max(1, Math.floor(LEAST_A_SECOND[what] * seconds));
}

/** Every text gets an answer in time, with places that exist. Returns the number of failures. */
function frontEnd(given: { seed: number; seconds: number }): number {
  const { inputs, accepted, slowestMs, failures } = fuzzFrontEnd(given);
  console.log(
    `texts               ${inputs}, ${accepted} of them policies, slowest ${slowestMs.toFixed(1)} ms, failures ${failures.length}`,
  );
  for (const failure of failures.slice(0, 5)) console.log(`  ${failure}`);
  return failures.length + printShortfalls([{ what: 'texts', count: inputs, least: floorOf('texts', given.seconds) }]);
}

/** A key that two reports of the same fault probably share. */
function causeOf({ backend, error, text }: Disagreement): string {
  const operators = text.match(/[<>!=]+|\b(?:in|contains|starts|ends|is|any|all|none)\b/g) ?? [];
  return `${backend}: ${error instanceof Error ? error.message : operators.join(' ')}`;
}

/** A cluster with the collation C, one with ICU's en-US, and PGlite. */
async function openLanes(stops: (() => Promise<void>)[]): Promise<{ lanes: readonly Lane[]; url: string }> {
  const lanes: Lane[] = [];
  let url = '';
  for (const collation of options.icu ? (['icu', 'icu'] as const) : (['c', 'icu'] as const).slice(0, LANES)) {
    const server = await startPostgres({ collation, settings: LONG_RUN });
    if (server === undefined) break;
    if (url === '') url = server.url;
    stops.push(() => server.stop());
    const client = new pg.Client(readServerUrl(server.url).config);
    await client.connect();
    stops.push(() => client.end());
    lanes.push({ database: client as unknown as Lane['database'], backend: 'PostgreSQL' });
    console.log(`PostgreSQL, default collation ${server.collation}`);
  }
  if (!options['no-pglite'] && options.world === undefined) {
    lanes.push(await openEmbeddedLane(stops, { rest: 9 }));
    console.log('PGlite');
  }
  return { lanes, url };
}

interface Summary {
  readonly run: Run;
  readonly shapes: Shapes;
  readonly found: number;
  readonly seconds: number;
  readonly doorCounts: DoorCounts;
}

function summarise({ run: { counts, seed }, shapes, found, seconds, doorCounts }: Summary): void {
  const million = (count: number) => `${(count / 1e6).toFixed(2)} M`;
  const perMinute = (count: number) => million((count / seconds) * 60);
  const { known, met, missing, others } = shapes.report();
  console.log(`worlds              ${counts.worlds}`);
  console.log(
    `policies            ${counts.policies}, refused by the checker ${counts.rejected} ${JSON.stringify(Object.fromEntries(counts.rejections))}`,
  );
  console.log(
    `decisions           ${million(counts.decisions)} (${perMinute(counts.decisions)} a minute), ` +
      `by PostgreSQL ${million(counts.inPostgres)}, embedded ${million(counts.inEmbedded)}`,
  );
  console.log(`  of written records ${million(counts.writes)}`);
  const { writes, allowed } = doorCounts;
  console.log(`writes by the store ${writes}, in ${doorCounts.worlds} worlds, ${allowed} of them allowed`);
  console.log(`too slow to answer  ${counts.slow}`);
  console.log(`unknown             ${((100 * counts.unknown) / Math.max(1, counts.decisions)).toFixed(1)} %`);
  console.log(`shapes met          ${met} of ${known}, and ${others} that are not on the list`);
  for (const shape of options.shapes ? missing : missing.slice(0, 20)) console.log(`  not met: ${shape}`);
  console.log(`disagreements       ${found} (seed ${seed})`);
}
