/**
 * Servers in turn, in short rounds: what disturbs the machine disturbs all of them. A ratio is the median of the paired rounds; a target is
 * missed only where the better quarter of the rounds misses it too, so that noise alone misses nothing.
 */
import { call } from '../../movies/client.ts';
import type { Contender, DocumentsWorld } from '../documents-world.ts';
import { record } from '../figures.ts';
import { type LoadRequest, type LoadResult, load } from '../load.ts';
import { judgeRounds, median, type RoundsQuestion } from '../measure.ts';
import { processorTime } from '../processor-time.ts';
import { mustBeAlike } from './alike.ts';

const CONNECTIONS = 64;

export interface Course {
  readonly bench: string;
  readonly title: string;
  /** The nth request of a round. */
  readonly request: (n: number) => LoadRequest;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  /** Before each turn. */
  readonly prepare?: (seconds: number) => Promise<void>;
  /** A request that every server must answer alike, for the server with this number. */
  readonly sample?: (server: number) => LoadRequest;
  /** Members in which the answers to samples may differ. */
  readonly differs?: readonly string[];
  /** A request that every server must reject. */
  readonly rejected?: LoadRequest;
  /** Others that keep the servers busy at the same time. */
  readonly beside?: {
    readonly request: LoadRequest;
    readonly headers: Readonly<Record<string, string>>;
    readonly connections: number;
  };
  /** The targets of bylaw. */
  readonly targets: readonly Target[];
}

type Target =
  | { readonly of: 'usual' | 'best' | 'before'; readonly atLeast: number }
  | { readonly p99: 'over p50' | 'ms'; readonly atMost: number }
  | { readonly serverUs: number };

export interface RaceOptions {
  /** For all servers and rounds together. */
  readonly seconds: number;
  readonly rounds: number;
  /** The folder of another checkout, whose service races too. */
  readonly before?: string | undefined;
}

interface Turn extends LoadResult {
  /** Microseconds of processor time a request. */
  readonly serverUs: number;
  readonly databaseUs: number;
  /** The processor time of this program, the client. */
  readonly loadUs: number;
}
export interface Lap {
  readonly course: Course;
  readonly contender: Contender;
  readonly turns: readonly Turn[];
}

export async function race(world: DocumentsWorld, course: Course, options: RaceOptions): Promise<readonly Lap[]> {
  await mustAnswerAlike(world, course);
  const { contenders } = world;
  const seconds = options.seconds / options.rounds / contenders.length;
  const turns = contenders.map((): Turn[] => []);
  // Round 0 warms up, for long enough that the compiler of JavaScript has settled.
  for (let round = 0; round <= options.rounds; round++) {
    for (const at of contenders.keys()) {
      // Each begins in turn.
      const i = (at + round) % contenders.length;
      const turn = await runOnce(world, course, {
        contender: contenders[i]!,
        seconds: round === 0 ? Math.max(WARM_UP_SECONDS, seconds) : seconds,
      });
      if (round > 0) turns[i]!.push(turn);
    }
  }
  const laps = contenders.map((contender, i) => ({ course, contender, turns: turns[i]! }));
  report(course, laps);
  return laps;
}

const WARM_UP_SECONDS = 2;

async function runOnce(
  world: DocumentsWorld,
  course: Course,
  { contender, seconds }: { readonly contender: Contender; readonly seconds: number },
): Promise<Turn> {
  await course.prepare?.(seconds);
  const pids = [contender.pid, world.databasePid];
  const before = pids.map(timeOf);
  const ownBefore = process.cpuUsage();
  const common = { url: contender.url, seconds };
  const headers = { authorization: `Bearer ${world.token}`, ...course.headers };
  const others = course.beside;
  const [result] = await Promise.all([
    load({ ...common, request: course.request, headers, connections: CONNECTIONS }),
    others &&
      load({
        ...common,
        request: () => others.request,
        headers: { ...headers, ...others.headers },
        connections: others.connections,
      }),
  ]);
  if (result.statuses.size !== 1 || !result.statuses.has(course.status))
    throw new Error(`${contender.name} answered ${JSON.stringify([...result.statuses])}`);
  const requests = result.requestsPerSecond * result.seconds;
  const [serverUs, databaseUs] = pids.map((pid, i) => (timeOf(pid) - before[i]!) / requests);
  const { user, system } = process.cpuUsage(ownBefore);
  return { ...result, serverUs: serverUs!, databaseUs: databaseUs!, loadUs: (user + system) / requests };
}

const timeOf = (pid: number | undefined): number => (pid === undefined ? Number.NaN : processorTime(pid));

// ---------------------------------------------------------------- the same answers

/** Throws where there is nothing to compare. */
export async function mustAnswerAlike({ contenders, token }: DocumentsWorld, course: Course): Promise<void> {
  const { sample = () => course.request(3), differs, rejected } = course;
  const answers = await Promise.all(contenders.map(({ url }, i) => ask(url, token, sample(i))));
  mustBeAlike(answers, differs);
  if (answers[0]!.status !== course.status) throw new Error(`the answer is ${JSON.stringify(answers[0])}`);
  if (rejected === undefined) return;
  for (const { url, name } of contenders) {
    const { status } = await ask(url, token, rejected);
    if (status !== 403 && status !== 404) throw new Error(`${name} allows what it must reject`);
  }
}

const ask = (url: string, token: string, { method, path, body }: LoadRequest) =>
  call(url + path, { method, token, body });

// ---------------------------------------------------------------- the figures

type Measure = 'requestsPerSecond' | 'p50' | 'p99' | 'serverUs' | 'databaseUs' | 'loadUs';
export const medianOf = ({ turns }: Lap, measure: Measure): number => median(turns.map((turn) => turn[measure]));

/** The requests/s of one lap in those of the other, of each pair of rounds. */
const ratiosOf = (lap: Lap, other: Lap): readonly number[] =>
  lap.turns.map((turn, i) => turn.requestsPerSecond / other.turns[i]!.requestsPerSecond);

/** The median of the paired rounds. */
export const gainOf = (lap: Lap, other: Lap): number => median(ratiosOf(lap, other));

/** How often a lap would fit into the processor time that the other took, of server and database alone: asking costs the same for both. */
const costRatioOf = (lap: Lap, other: Lap): number =>
  median(lap.turns.map((turn, i) => costOf(other.turns[i]!) / costOf(turn)));

const costOf = ({ serverUs, databaseUs }: Turn): number => serverUs + (Number.isNaN(databaseUs) ? 0 : databaseUs);

function report(course: Course, laps: readonly Lap[]): void {
  const asking = median(laps.flatMap(({ turns }) => turns.map(({ loadUs }) => loadUs)));
  console.log(
    `\n  ${course.title} (asking takes ${asking.toFixed(0)} µs a request; in brackets: ratio by processor time)`,
  );
  for (const lap of laps) console.log(lineOf(lap, laps));
  const hasBefore = laps.some(({ contender }) => contender.name === 'before');
  const targets = hasBefore ? [...course.targets, NOT_SLOWER] : course.targets;
  const notes = targets.map((target) => judgeRounds(questionOf(course.title, target, laps)));
  const bars = { bench: course.bench, kind: 'bars', labels: laps.map(({ contender }) => contender.name) } as const;
  const series = (name: string, measure: Measure) => ({
    name,
    values: laps.map((lap) => round(medianOf(lap, measure))),
  });
  record({
    ...bars,
    title: course.title,
    unit: 'requests/s',
    series: [series('requests/s', 'requestsPerSecond')],
    notes,
  });
  record({
    ...bars,
    title: `${course.title}: answer times`,
    unit: 'ms',
    series: [series('p50', 'p50'), series('p99', 'p99')],
    notes: [],
  });
  const us = [series('server', 'serverUs'), series('database', 'databaseUs')];
  // An embedded database is in the process of its server, and another machine's is not counted.
  const counted = us.filter(({ values }) => values.every(Number.isFinite));
  if (counted.length > 0)
    record({ ...bars, title: `${course.title}: processor time a request`, unit: 'µs', series: counted, notes: [] });
}

/** The target of a race with the version before. */
const NOT_SLOWER = { of: 'before', atLeast: 0.97 } as const;

const round = (value: number): number => Number(value.toPrecision(4));

/** More ratios would not fit a line. */
const isNextTo = (one: Contender, other: Contender): boolean =>
  one.server === other.server || one.processes === other.processes;

function lineOf(lap: Lap, laps: readonly Lap[]): string {
  const rates = lap.turns.map(({ requestsPerSecond }) => requestsPerSecond);
  const range = `[${Math.min(...rates).toFixed(0)}–${Math.max(...rates).toFixed(0)}]`;
  const nameWidth = Math.max(...laps.map(({ contender }) => contender.name.length));
  const time = (measure: Measure, digits: number) => medianOf(lap, measure).toFixed(digits).padStart(6);
  const versus = laps
    .filter((other) => other !== lap && isNextTo(other.contender, lap.contender))
    .map((other) => {
      const [rate, cost] = [gainOf(lap, other), costRatioOf(lap, other)];
      return `${rate.toFixed(2)} (${cost.toFixed(2)}) × ${other.contender.name}`;
    });
  const database = Number.isNaN(medianOf(lap, 'databaseUs')) ? '' : ` + ${time('databaseUs', 0)}`;
  return (
    `  ${lap.contender.name.padEnd(nameWidth)} ${time('requestsPerSecond', 0)} requests/s ${range.padEnd(15)}` +
    `  p50 ${time('p50', 1)} ms  p99 ${time('p99', 1)} ms` +
    `  ${time('serverUs', 0)}${database} µs   ${versus.join('  ')}`
  );
}

function questionOf(title: string, target: Target, laps: readonly Lap[]): RoundsQuestion {
  const [bylaw] = laps;
  if ('of' in target) {
    const other = laps.find(({ contender }) => contender.name === target.of)!;
    const label = `${title}: requests/s ÷ those of the ${target.of} server`;
    return { label, values: ratiosOf(bylaw!, other), atLeast: target.atLeast };
  }
  const of = (value: (turn: Turn) => number) => bylaw!.turns.map(value);
  if ('serverUs' in target) {
    const label = `${title}: µs of processor time a request`;
    return { label, values: of(({ serverUs }) => serverUs), atMost: target.serverUs };
  }
  const { atMost } = target;
  return target.p99 === 'over p50'
    ? { label: `${title}: p99 ÷ p50`, values: of(({ p50, p99 }) => p99 / p50), atMost }
    : { label: `${title}: p99 in ms`, values: of(({ p99 }) => p99), atMost };
}
